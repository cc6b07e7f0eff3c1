import Synchronization

/// A value that is set once, for all tasks that wait for it, before or after it is set.
final class PendingResult<Value: Sendable>: Sendable {
    private struct State {
        var result: Result<Value, any Error>?
        var waiters: [Int: CheckedContinuation<Value, any Error>] = [:]
        var next = 0
    }

    private let state = Mutex(State())

    /// Sets the result. Only the first result counts.
    ///
    /// - Returns: Whether this one is the first.
    @discardableResult
    func resume(_ result: Result<Value, any Error>) -> Bool {
        let waiters = state.withLock { state -> [Int: CheckedContinuation<Value, any Error>]? in
            guard state.result == nil else { return nil }
            state.result = result
            defer { state.waiters = [:] }
            return state.waiters
        }
        guard let waiters else { return false }
        for waiter in waiters.values { waiter.resume(with: result) }
        return true
    }

    /// Waits for the end of work, or until the present task is cancelled. The work continues to its own end.
    ///
    /// - Throws: `CancellationError`, and the errors of the work.
    static func of(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let result = PendingResult()
        // The task ends with the work.
        Task {
            do {
                result.resume(.success(try await work()))
            } catch {
                result.resume(.failure(error))
            }
        }
        return try await result.value
    }

    /// - Throws: `CancellationError` if the waiting task is cancelled.
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
