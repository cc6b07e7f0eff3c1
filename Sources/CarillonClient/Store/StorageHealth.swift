import Synchronization

/// Whether the storage works. It reports when the storage begins to fail and when it works again, and resumes operations that
/// wait to be repeated.
///
/// The storage fails after a transaction failed, until a transaction wrote something; and while an operation is repeated because of the
/// storage, as for a file that does not fit on the disk. After such an operation was given up, the storage fails until an operation succeeds.
final class StorageHealth: Sendable {
    enum Change: Equatable, Sendable {
        case failed(String)
        case recovered
    }

    private struct State {
        var doTransactionsFail = false
        /// The operations that are repeated, and whether transactions failed when each of them failed.
        var operations: [UInt64: Bool] = [:]
        /// Whether an operation other than a transaction was given up, and none has succeeded since.
        var hasAbandonedOperation = false
        var waiting: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var next: UInt64 = 0
        var listener: (@Sendable (Change) -> Void)?

        var isFailing: Bool { doTransactionsFail || !operations.isEmpty || hasAbandonedOperation }

        mutating func makeNumber() -> UInt64 {
            next += 1
            return next
        }
    }

    private let state = Mutex(State())

    /// The longest wait between two attempts.
    static let longestWait = Duration.seconds(60)

    /// Sets the listener. It is called under a lock, so that it receives the changes in their order.
    func setListener(_ listener: @escaping @Sendable (Change) -> Void) { state.withLock { $0.listener = listener } }

    var isFailing: Bool { state.withLock { $0.isFailing } }

    // MARK: Transactions

    func transactionFailed(_ error: PushError) {
        guard error.code == .storageUnavailable else { return }
        change(error.message) { $0.doTransactionsFail = true }
    }

    /// A transaction succeeded and wrote data. After a failure, all waiting operations are repeated.
    func transactionWrote() {
        let waiting = change("") { state -> [AsyncStream<Void>.Continuation] in
            guard state.doTransactionsFail else { return [] }
            state.doTransactionsFail = false
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for waiter in waiting { waiter.finish() }
    }

    // MARK: Operations

    /// An operation failed because of the storage, and will be repeated.
    /// - Returns: The number to pass to ``operationEnded(_:succeeded:)``.
    func operationFailed(_ error: PushError) -> UInt64 {
        change(error.message) { state in
            let number = state.makeNumber()
            state.operations[number] = state.doTransactionsFail
            return number
        }
    }

    /// The operation succeeded, or was given up.
    func operationEnded(_ number: UInt64, succeeded: Bool) {
        change("") { state in
            guard let isTransaction = state.operations.removeValue(forKey: number) else { return }
            if succeeded {
                state.hasAbandonedOperation = false
            } else if isTransaction {
                // The next transaction that writes shows that transactions succeed again.
                state.doTransactionsFail = true
            } else {
                state.hasAbandonedOperation = true
            }
        }
    }

    /// A file was written at the first attempt.
    func fileWritten() {
        change("") { $0.hasAbandonedOperation = false }
    }

    /// Waits until it is time to try again: up to a limit, or until a transaction succeeds again.
    ///
    /// - Throws: `CancellationError`.
    func wait(atMost limit: Duration) async throws {
        let (stream, waiter) = AsyncStream.makeStream(of: Void.self)
        let number = state.withLock { state in
            let number = state.makeNumber()
            state.waiting[number] = waiter
            return number
        }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in stream {} }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
        state.withLock { _ = $0.waiting.removeValue(forKey: number) }
        try Task.checkCancellation()
    }

    private func change<Value: Sendable>(_ message: String, _ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            let before = state.isFailing
            let value = body(&state)
            if state.isFailing != before { state.listener?(before ? .recovered : .failed(message)) }
            return value
        }
    }
}

extension PushError {
    /// Returns the error if its code is `storageUnavailable`, or else nil.
    static func storageFault(_ error: any Error) -> PushError? {
        guard let error = error as? PushError, error.code == .storageUnavailable else { return nil }
        return error
    }
}

extension ClientReconnectSchedule {
    /// Returns the wait after a failure of the storage.
    mutating func storageFailed() -> Duration {
        min(StorageHealth.longestWait, failed(random: .random(in: 0..<1)))
    }
}
