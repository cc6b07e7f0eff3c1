import GRDB
import Synchronization

@testable import CarillonSQLite

extension SQLiteStore {
    /// Returns the SQL of the statements that run during the work, in their order. The store must be in memory, where reads and writes use
    /// one connection.
    ///
    /// Statements of triggers are left out, and those that begin, end or prepare a transaction.
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
        return (try result.get(), seen.withLock { $0 })
    }

    private static let untraced = ["--", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA"]
}
