import Synchronization

extension OutwardCaller {
    /// Limits the total time for the look-up, the connection and the response. Returns nil if they take longer.
    func ask(_ request: Request, within patience: Duration) async -> Answer? {
        let first = FirstAnswer()
        let call = Task { first.resolve(await ask(request)) }
        let limit = Task {
            try await Task.sleep(for: patience)
            first.resolve(nil)
            call.cancel()
        }
        defer { limit.cancel() }
        return await first.value()
    }

    /// The first result. A look-up or a connection that continues is not waited for.
    private final class FirstAnswer: Sendable {
        private enum State {
            case empty
            case awaited(CheckedContinuation<Answer?, Never>)
            case resolved(Answer?)
        }

        private let state = Mutex(State.empty)

        func resolve(_ answer: Answer?) {
            let waiter: CheckedContinuation<Answer?, Never>? = state.withLock { state in
                switch state {
                case .empty:
                    state = .resolved(answer)
                    return nil
                case .awaited(let waiter):
                    state = .resolved(answer)
                    return waiter
                case .resolved: return nil
                }
            }
            waiter?.resume(returning: answer)
        }

        /// Must be called only once.
        func value() async -> Answer? {
            await withCheckedContinuation { continuation in
                let ready: Answer?? = state.withLock { state in
                    if case .resolved(let answer) = state { return .some(answer) }
                    state = .awaited(continuation)
                    return nil
                }
                if let answer = ready { continuation.resume(returning: answer) }
            }
        }
    }
}
