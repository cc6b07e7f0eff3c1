/// A batch over a synchronous sequence. The reader of the results drives it, so it needs no task.
final class BatchFeed<Recipients: Sequence> where Recipients.Element: APNsRecipient {
    typealias Recipient = Recipients.Element

    private let client: APNsClient
    private let box = BatchBox()
    private let window: Int
    private var source: Recipients.Iterator
    private var ledger: BatchLedger<Recipient>
    private var ready: [APNsResult<Recipient>] = []
    private var nextReady = 0
    private var isExhausted = false

    init(client: APNsClient, prepared: PreparedNotification, recipients: Recipients) {
        self.client = client
        window = client.configuration.batchWindow
        source = recipients.makeIterator()
        ledger = BatchLedger(client: client, prepared: prepared, box: box)
    }

    func next() async -> APNsResult<Recipient>? {
        while true {
            if nextReady < ready.count {
                defer { nextReady += 1 }
                return ready[nextReady]
            }
            ready = []
            nextReady = 0
            feed()
            if ready.isEmpty {
                guard ledger.underWay > 0 else { return nil }
                let client = client
                let box = box
                let results = await withTaskCancellationHandler {
                    await box.next()
                } onCancel: {
                    client.withdraw(box)
                }
                ready = ledger.settle(results)
                // The next pushes are sent before the caller processes these results.
                feed()
            }
        }
    }

    private func feed() {
        // A cancelled task starts no further push.
        if Task.isCancelled { isExhausted = true }
        guard !isExhausted else { return }
        while ledger.underWay < window, ready.count < window {
            guard let recipient = source.next() else {
                isExhausted = true
                break
            }
            ledger.add(recipient)
            ready.append(contentsOf: ledger.takeFailed())
        }
        ledger.flush()
    }
}
