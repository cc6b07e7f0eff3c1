import Synchronization

extension OutwardCaller {
    /// Waits no longer than this for all of it together: the name, the connection and the answer. Nil when it takes longer.
    func ask(_ request: Request, within patience: Duration) async -> Answer? {
        let first = FirstAnswer()
        let call = Task { first.give(await ask(request)) }
        let limit = Task {
            try await Task.sleep(for: patience)
            first.give(nil)
            call.cancel()
        }
        defer { limit.cancel() }
        return await first.value()
    }

    /// What comes first; a look-up or a connection that goes on for a moment longer is waited for by nobody.
    private final class FirstAnswer: Sendable {
        private enum State {
            case empty
            case awaited(CheckedContinuation<Answer?, Never>)
            case given(Answer?)
        }

        private let state = Mutex(State.empty)

        func give(_ answer: Answer?) {
            let waiter: CheckedContinuation<Answer?, Never>? = state.withLock { state in
                switch state {
                case .empty:
                    state = .given(answer)
                    return nil
                case .awaited(let waiter):
                    state = .given(answer)
                    return waiter
                case .given: return nil
                }
            }
            waiter?.resume(returning: answer)
        }

        /// To be asked once.
        func value() async -> Answer? {
            await withCheckedContinuation { continuation in
                let isGiven: Answer?? = state.withLock { state in
                    if case .given(let answer) = state { return .some(answer) }
                    state = .awaited(continuation)
                    return nil
                }
                if let answer = isGiven { continuation.resume(returning: answer) }
            }
        }
    }
}
