import Synchronization

/// A batch over a sequence whose recipients come in time: a task reads them, within the window, while results are read.
final class RecipientFlow<Recipients: AsyncSequence & Sendable>: Sendable where Recipients.Element: APNsRecipient {
    typealias Recipient = Recipients.Element

    private let client: APNsClient
    private let shared: FlowLedger<Recipient>
    private let failure: Mutex<Recipients.Failure?>
    private let reader: Task<Recipients.Failure?, Never>

    init(client: APNsClient, prepared: PreparedNotification, recipients: Recipients) {
        let shared = FlowLedger<Recipient>(client: client, prepared: prepared)
        self.client = client
        self.shared = shared
        failure = Mutex(nil)
        // It ends with the source, or when the results are no longer read: see `deinit`.
        reader = Task {
            defer { shared.ended() }
            var iterator = recipients.makeAsyncIterator()
            while !Task.isCancelled {
                do throws(Recipients.Failure) {
                    guard let recipient = try await iterator.next(isolation: #isolation) else { return nil }
                    await shared.room()
                    guard !Task.isCancelled else { return nil }
                    shared.add(recipient)
                } catch {
                    return error
                }
            }
            return nil
        }
    }

    deinit {
        reader.cancel()
        shared.release()
    }

    /// The next results, at least one; nil after the last.
    func next() async throws(Recipients.Failure) -> [APNsResult<Recipient>]? {
        while true {
            switch shared.take() {
            case .results(let results): return results
            case .over:
                if let failure = await reader.value { throw failure }
                return nil
            case .nothing: break
            }
            let (client, shared, reader) = (client, shared, reader)
            await withTaskCancellationHandler {
                await shared.wait()
            } onCancel: {
                reader.cancel()
                shared.release()
                client.withdraw(shared.box)
            }
        }
    }
}

/// What the reading task and the reader of results share.
final class FlowLedger<Recipient: APNsRecipient>: Sendable {
    enum Taken {
        case results([APNsResult<Recipient>])
        case nothing
        case over
    }

    private struct State {
        var ledger: BatchLedger<Recipient>
        var ready: [APNsResult<Recipient>] = []
        var waitingForRoom: UnsafeContinuation<Void, Never>?
        var hasEnded = false
        var isReleased = false
    }

    let box = BatchBox()
    private let window: Int
    private let state: Mutex<State>

    init(client: APNsClient, prepared: PreparedNotification) {
        window = client.configuration.batchWindow
        state = Mutex(State(ledger: BatchLedger(client: client, prepared: prepared, box: box)))
    }

    /// Waits until another push may be under way.
    func room() async {
        await withUnsafeContinuation { continuation in
            let isThere = state.withLock { state in
                if state.isReleased || state.ledger.underWay + state.ready.count < window { return true }
                state.waitingForRoom = continuation
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func add(_ recipient: Recipient) {
        let hasFailed = state.withLock { state in
            state.ledger.add(recipient)
            state.ledger.flush()
            let failed = state.ledger.takeFailed()
            state.ready.append(contentsOf: failed)
            return !failed.isEmpty
        }
        if hasFailed { box.nudge() }
    }

    func ended() {
        state.withLock { $0.hasEnded = true }
        box.nudge()
    }

    /// Nobody reads results any more: whoever waits for room goes on, and sees that it is cancelled.
    func release() {
        let waiting = state.withLock { state in
            state.isReleased = true
            defer { state.waitingForRoom = nil }
            return state.waitingForRoom
        }
        waiting?.resume()
    }

    func take() -> Taken {
        let (taken, waiting) = state.withLock { state -> (Taken, UnsafeContinuation<Void, Never>?) in
            if !state.ready.isEmpty {
                defer {
                    state.ready = []
                    state.waitingForRoom = nil
                }
                return (.results(state.ready), state.waitingForRoom)
            }
            return (state.hasEnded && state.ledger.underWay == 0 ? .over : .nothing, nil)
        }
        waiting?.resume()
        return taken
    }

    func wait() async {
        let results = await box.next()
        state.withLock { $0.ready.append(contentsOf: $0.ledger.settle(results)) }
    }
}
