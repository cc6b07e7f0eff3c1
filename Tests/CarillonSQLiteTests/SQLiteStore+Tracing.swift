import GRDB
import Synchronization
import Testing

@testable import CarillonSQLite

extension SQLiteStore {
    /// Returns the SQL of the statements that run during the work, in their order. The store must be in memory, where reads and writes use
    /// one connection.
    ///
    /// Statements that begin, end or prepare a transaction are left out. A statement of a trigger is an error, as the schema has none.
    func tracing<Value>(_ work: () async throws -> Value) async throws -> (value: Value, statements: [String]) {
        let seen = Mutex<[String]>([])
        try await group.run { db in
            db.trace { event in
                guard case .statement(let statement) = event else { return }
                let sql = statement.sql
                guard !Self.untraced.contains(where: { sql.hasPrefix($0) }) else { return }
                seen.withLock { $0.append(sql) }
            }
        }
        let result: Result<Value, any Error>
        do {
            result = .success(try await work())
        } catch {
            result = .failure(error)
        }
        // Also after an error: the connection is the store's only one.
        try await group.run { db in db.trace(nil) }
        let statements = seen.withLock { $0 }
        // SQLite traces a statement of a trigger as a comment.
        #expect(!statements.contains { $0.hasPrefix("--") }, "a trigger ran")
        return (try result.get(), statements)
    }

    private static let untraced = ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA"]
}
