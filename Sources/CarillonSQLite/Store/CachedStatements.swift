import CarillonCore
import GRDB
import Metrics

// GRDB compiles SQL text each time, which costs more than running it. These methods cache the statement with the connection.

extension Database {
    func run(_ sql: String, _ arguments: StatementArguments = []) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Runs an INSERT that returns the serial number of its only row.
    func inserted(_ sql: String, _ arguments: StatementArguments) throws -> Int64 {
        guard let serial = try Int64.fetchAll(cachedStatement(sql: sql), arguments: arguments).first else {
            throw StoreFault(.unavailable, "a row was not inserted")
        }
        return serial
    }
}

extension DatabaseValueConvertible {
    /// Returns the first column of the first row.
    static func first(_ db: Database, _ sql: String, _ arguments: StatementArguments = []) throws -> Self? {
        try fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
    }
}

extension Database {
    /// Counts changes of a transaction after its commit, because work may run more than once.
    func count(_ amount: Int, of counter: Counter) {
        if amount > 0 { afterNextTransaction { _ in counter.increment(by: amount) } }
    }
}
