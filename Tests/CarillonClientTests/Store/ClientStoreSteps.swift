import GRDB

@testable import CarillonClient

extension ClientStore {
    /// Runs one step in its turn, and waits for it: the file is locked for anybody else.
    func inStep<Value: Sendable>(_ step: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            schedule { database in continuation.resume(with: Result { try step(database) }) }
        }
    }
}
