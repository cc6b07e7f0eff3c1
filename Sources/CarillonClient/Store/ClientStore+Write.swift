import GRDB
import Logging

extension ClientStore {
    /// Makes a change in one transaction, in its turn, and returns what the change returns.
    ///
    /// - Parameter reachingDisk: Whether the disk has the change when this returns.
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

    /// Makes a change in its turn, for which nobody waits. The disk need not have it. A failure is a warning in the log.
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
