import Synchronization

/// Collects the answers to a number of requests. Each answer may come once, from any thread.
final class ResultCollector<Answer: Sendable>: Sendable {
    private struct State {
        var answers: [Answer?]
        var missing: Int
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(answers: Array(repeating: nil, count: count), missing: count)) }

    func note(_ place: Int, _ answer: Answer) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.answers[place] = answer
            state.missing -= 1
            guard state.missing == 0 else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Waits for all answers. This must be called once.
    func all() async -> [Answer] {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.missing > 0 { state.waiter = continuation }
                return state.missing == 0
            }
            if isDone { continuation.resume() }
        }
        return state.withLock { $0.answers.compactMap(\.self) }
    }
}
