import Synchronization

/// Collects the results of one batch. A reader takes all of them at once.
final class BatchBox: Sendable {
    typealias Results = [Submission]

    private struct State {
        var results: Results = []
        var waiting: [UnsafeContinuation<Results, Never>] = []
        var isNudged = false
    }

    private let state = Mutex(State())

    func finished(_ results: Results) {
        for submission in results { submission.handedOver() }
        let waiting = state.withLock { state -> UnsafeContinuation<Results, Never>? in
            guard let waiting = state.waiting.popLast() else {
                state.results.append(contentsOf: results)
                return nil
            }
            return waiting
        }
        waiting?.resume(returning: results)
    }

    /// Waits until there is a result, and takes all results; returns none after ``nudge()``.
    func next() async -> Results {
        await withUnsafeContinuation { continuation in
            let ready = state.withLock { state -> Results? in
                if !state.results.isEmpty || state.isNudged {
                    state.isNudged = false
                    defer { state.results = [] }
                    return state.results
                }
                state.waiting.append(continuation)
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// Wakes all waiting readers, or the next reader if none is waiting, although there may be no result.
    func nudge() {
        let waiting = state.withLock { state in
            if state.waiting.isEmpty { state.isNudged = true }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: []) }
    }
}
