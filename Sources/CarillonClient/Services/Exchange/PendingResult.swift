import Synchronization

/// Something that comes once, for those who wait for it, whenever they begin to.
final class PendingResult<Value: Sendable>: Sendable {
    private struct State {
        var result: Result<Value, any Error>?
        var waiters: [Int: CheckedContinuation<Value, any Error>] = [:]
        var next = 0
    }

    private let state = Mutex(State())

    /// The first counts.
    func resume(_ result: Result<Value, any Error>) {
        let waiters = state.withLock { state -> [Int: CheckedContinuation<Value, any Error>] in
            guard state.result == nil else { return [:] }
            state.result = result
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(with: result) }
    }

    /// - Throws: `CancellationError` when the task is cancelled that waits.
    var value: Value {
        get async throws {
            let number = state.withLock { state in
                state.next += 1
                return state.next
            }
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let result = state.withLock { state -> Result<Value, any Error>? in
                        if let result = state.result { return result }
                        if Task.isCancelled { return .failure(CancellationError()) }
                        state.waiters[number] = continuation
                        return nil
                    }
                    if let result { continuation.resume(with: result) }
                }
            } onCancel: {
                state.withLock { $0.waiters.removeValue(forKey: number) }?.resume(throwing: CancellationError())
            }
        }
    }
}
