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

    /// Waits for work, and no longer once the present task is cancelled. The work then goes on to its own end.
    ///
    /// - Throws: `CancellationError`, and what the work throws.
    static func of(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let result = PendingResult()
        // Ends with the work.
        Task {
            do {
                result.resume(.success(try await work()))
            } catch {
                result.resume(.failure(error))
            }
        }
        return try await result.value
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
