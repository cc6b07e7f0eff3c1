import GRDB
import Logging

extension ClientStore {
    /// Makes a change in one transaction, in its turn, and returns the value of the closure.
    /// - Parameter reachingDisk: Whether the change is on disk when this returns.
    func write<Value: Sendable>(
        reachingDisk: Bool = true, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(PushError) -> Value {
        let result: Result<Value, PushError> = await withCheckedContinuation { continuation in
            schedule { db in
                var value: Value?
                let result = Result { () throws(PushError) in
                    try self.transaction(reachingDisk: reachingDisk, in: db) { value = try body(db) }
                }
                let nothing = PushError(.storageUnavailable, "The storage answered nothing.")
                continuation.resume(returning: result.flatMap { value.map { .success($0) } ?? .failure(nothing) })
            }
        }
        return try result.get()
    }

    /// Makes a change in its turn, without a wait of the caller. The change need not reach the disk. A failure is logged as a
    /// warning.
    func scheduleWrite(
        orLog failure: String, _ logger: Logger, _ body: @escaping @Sendable (Database) throws -> Void
    ) {
        schedule { db in
            do throws(PushError) {
                try self.transaction(reachingDisk: false, in: db) { try body(db) }
            } catch {
                logger.warning("\(failure)", metadata: ["reason": "\(error.message)"])
            }
        }
    }
}
