/// The pushes of one batch that are under way. The ledger submits the pushes and pairs each response with its recipient.
struct BatchLedger<Recipient: APNsRecipient> {
    private let client: APNsClient
    private let prepared: PreparedNotification
    private let box: BatchBox
    private var recipients: [Recipient?] = []
    private var free: [Int] = []
    private var submissions: [APNsEnvironment.Address: [Submission]] = [:]
    private var failed: [APNsResult<Recipient>] = []
    private(set) var underWay = 0

    init(client: APNsClient, prepared: PreparedNotification, box: BatchBox) {
        self.client = client
        self.prepared = prepared
        self.box = box
    }

    /// Prepares a push. ``flush()`` sends it with the others.
    mutating func add(_ recipient: Recipient) {
        do throws(APNsError) {
            let path = try DevicePath.make(recipient.deviceToken)
            let index = free.popLast() ?? recipients.count
            if index == recipients.count { recipients.append(recipient) } else { recipients[index] = recipient }
            underWay += 1
            let address = (recipient.environment ?? client.configuration.environment).push
            submissions[address, default: []].append(
                Submission(
                    head: prepared.head, path: path, body: prepared.payload, timeout: client.configuration.timeout,
                    waiter: .batch(box), index: index))
        } catch {
            failed.append(APNsResult(recipient: recipient, result: .failure(error)))
        }
    }

    mutating func flush() {
        for (address, submissions) in submissions {
            do throws(APNsError) {
                try client.pool(of: address).submit(submissions)
            } catch {
                for submission in submissions { submission.end(.failure(error)) }
            }
        }
        submissions.removeAll(keepingCapacity: true)
    }

    /// Returns the results of pushes that were never sent because their tokens are malformed.
    mutating func takeFailed() -> [APNsResult<Recipient>] {
        guard !failed.isEmpty else { return [] }
        defer { failed = [] }
        return failed
    }

    mutating func settle(_ results: BatchBox.Results) -> [APNsResult<Recipient>] {
        var settled: [APNsResult<Recipient>] = []
        settled.reserveCapacity(results.count)
        for submission in results {
            let index = submission.index
            guard let recipient = recipients[index] else { continue }
            recipients[index] = nil
            free.append(index)
            underWay -= 1
            settled.append(APNsResult(recipient: recipient, result: submission.result.map(APNsResponse.init)))
        }
        return settled
    }

}
