import Synchronization

/// A batch over an asynchronous sequence. A task reads the recipients, within the window, while the results are read.
final class RecipientFlow<Recipients: AsyncSequence & Sendable>: Sendable where Recipients.Element: APNsRecipient {
    typealias Recipient = Recipients.Element
    private typealias Reader = Task<Recipients.Failure?, Never>

    private let client: APNsClient
    private let recipients: Recipients
    private let ledger: FlowLedger<Recipient>
    private let reader = Mutex<Reader?>(nil)

    init(client: APNsClient, prepared: PreparedNotification, recipients: Recipients) {
        self.client = client
        self.recipients = recipients
        ledger = FlowLedger(client: client, prepared: prepared)
    }

    deinit {
        reader.withLock { $0?.cancel() }
        ledger.release()
    }

    /// Returns the next result; nil after the last.
    func next() async throws(Recipients.Failure) -> APNsResult<Recipient>? {
        let reader = start()
        while true {
            switch ledger.take() {
            case .result(let result): return result
            case .over:
                if let failure = await reader.value { throw failure }
                return nil
            case .nothing: break
            }
            let (client, ledger) = (client, ledger)
            await withTaskCancellationHandler {
                await ledger.wait()
            } onCancel: {
                reader.cancel()
                ledger.release()
                client.withdraw(ledger.box)
            }
        }
    }

    /// Returns the task that reads recipients. It starts with the first request for a result. It ends after the last
    /// recipient, or when the results are released: see `deinit`.
    private func start() -> Reader {
        reader.withLock { reader in
            if let reader { return reader }
            let (recipients, ledger) = (recipients, ledger)
            let begun = Reader { await Self.read(recipients, into: ledger) }
            reader = begun
            return begun
        }
    }

    private static func read(_ recipients: Recipients, into ledger: FlowLedger<Recipient>) async -> Recipients.Failure? {
        defer { ledger.ended() }
        var iterator = recipients.makeAsyncIterator()
        while !Task.isCancelled {
            do throws(Recipients.Failure) {
                guard let recipient = try await iterator.next(isolation: #isolation) else { return nil }
                await ledger.room()
                guard !Task.isCancelled else { return nil }
                ledger.add(recipient)
            } catch {
                return error
            }
        }
        return nil
    }
}
