import Synchronization

/// The requests and commands that any thread adds for a pool. The pool's loop takes all of them at once.
final class PoolInbox: Sendable {
    enum Command: Sendable {
        case warmUp(WarmUpTicket, WarmUpTicket.Continuation)
        case withdrawWarmUp(WarmUpTicket)
        case credentials(ConnectionOpener, ProviderTokens?)
        case shutDown(drains: Bool, UnsafeContinuation<Void, Never>?)
        case withdraw(BatchBox)
    }

    struct Contents {
        var submissions: [Submission] = []
        var cancellations: [Submission] = []
        var commands: [Command] = []
    }

    /// Whether the request was added. `wakes` is true if the caller must wake the loop, because no other caller has.
    enum Verdict {
        case taken(wakes: Bool)
        case full
        case shutDown
    }

    private struct State {
        var contents = Contents()
        /// The number of unfinished single requests.
        var singles = 0
        var isWakePending = false
        var isShutDown = false

        mutating func wakes() -> Bool {
            defer { isWakePending = true }
            return !isWakePending
        }
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: The largest number of unfinished single requests.
    init(limit: Int) { self.limit = limit }

    func submit(_ submission: Submission) -> Verdict {
        state.withLock { state in
            guard !state.isShutDown else { return .shutDown }
            guard state.singles < limit else { return .full }
            state.singles += 1
            state.contents.submissions.append(submission)
            return .taken(wakes: state.wakes())
        }
    }

    /// Adds the requests of one batch, which limits its own number.
    func submit(_ submissions: [Submission]) -> Verdict {
        state.withLock { state in
            guard !state.isShutDown else { return .shutDown }
            state.contents.submissions.append(contentsOf: submissions)
            return .taken(wakes: state.wakes())
        }
    }

    func cancel(_ submission: Submission) -> Bool {
        state.withLock { state in
            state.contents.cancellations.append(submission)
            return state.wakes()
        }
    }

    func command(_ command: Command) -> Bool {
        state.withLock { state in
            if case .shutDown = command { state.isShutDown = true }
            state.contents.commands.append(command)
            return state.wakes()
        }
    }

    func takeAll() -> Contents {
        state.withLock { state in
            defer {
                state.contents = Contents()
                state.isWakePending = false
            }
            return state.contents
        }
    }

    func singlesAreOver(_ count: Int) { state.withLock { $0.singles -= count } }
}
