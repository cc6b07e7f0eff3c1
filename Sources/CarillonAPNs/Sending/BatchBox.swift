import Synchronization

/// Where the results of one batch gather until its reader takes them, all at once.
final class BatchBox: Sendable {
    private struct State {
        var results: [(Int, SubmissionResult)] = []
        var waiting: UnsafeContinuation<[(Int, SubmissionResult)], Never>?
        var isNudged = false
    }

    private let state = Mutex(State())

    func finished(_ results: [(Int, SubmissionResult)]) {
        let waiting = state.withLock { state -> UnsafeContinuation<[(Int, SubmissionResult)], Never>? in
            guard let waiting = state.waiting else {
                state.results.append(contentsOf: results)
                return nil
            }
            state.waiting = nil
            return waiting
        }
        waiting?.resume(returning: results)
    }

    /// Waits until there is a result, and takes all that are there; none after a nudge.
    func next() async -> [(Int, SubmissionResult)] {
        await withUnsafeContinuation { continuation in
            let ready = state.withLock { state -> [(Int, SubmissionResult)]? in
                if !state.results.isEmpty || state.isNudged {
                    state.isNudged = false
                    defer { state.results = [] }
                    return state.results
                }
                state.waiting = continuation
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// Whoever waits, or waits next, looks again although there may be no result.
    func nudge() {
        let waiting = state.withLock { state in
            if state.waiting == nil { state.isNudged = true }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: [])
    }
}
