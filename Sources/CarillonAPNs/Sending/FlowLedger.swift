import NIOCore
import Synchronization

/// The state that the task that reads recipients shares with the readers of results.
final class FlowLedger<Recipient: APNsRecipient>: Sendable {
    enum Taken {
        case result(APNsResult<Recipient>)
        case nothing
        case over
    }

    private struct State {
        var ledger: BatchLedger<Recipient>
        var ready = CircularBuffer<APNsResult<Recipient>>()
        var waitingForRoom: UnsafeContinuation<Void, Never>?
        var hasEnded = false
        var isReleased = false

        /// The number of pushes that were submitted and whose results were not read.
        var held: Int { ledger.underWay + ready.count }
        var isOver: Bool { hasEnded && held == 0 }
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
                if state.isReleased || state.held < window { return true }
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

    /// Resumes the task that waits in ``room()``, because no more results are read. The task then finds that it is cancelled.
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
            guard let result = state.ready.popFirst() else { return (state.isOver ? .over : .nothing, nil) }
            // The task that waits in ``room()`` is resumed once for several free places, not for each.
            guard state.ready.isEmpty || state.held <= window / 2 else { return (.result(result), nil) }
            defer { state.waitingForRoom = nil }
            return (.result(result), state.waitingForRoom)
        }
        waiting?.resume()
        return taken
    }

    func wait() async {
        let results = await box.next()
        let isOver = state.withLock { state in
            state.ready.append(contentsOf: state.ledger.settle(results))
            return state.hasEnded && state.ledger.underWay == 0
        }
        // Other waiting readers must return, because there are no more results.
        if isOver { box.nudge() }
    }
}
