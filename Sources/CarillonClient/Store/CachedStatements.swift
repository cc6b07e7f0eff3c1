import GRDB

// GRDB compiles a statement in text form for each call, which takes longer than the statement itself. These functions keep the
// compiled statement with the connection.

extension Database {
    func run(_ sql: String, _ arguments: StatementArguments = []) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }
}

extension Row {
    static func first(_ db: Database, _ sql: String, _ arguments: StatementArguments = []) throws -> Row? {
        try fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
    }

    static func all(_ db: Database, _ sql: String, _ arguments: StatementArguments = []) throws -> [Row] {
        try fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
    }
}

extension DatabaseValueConvertible {
    /// Returns the first column of the first row.
    static func first(_ db: Database, _ sql: String, _ arguments: StatementArguments = []) throws -> Self? {
        try fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
    }
}
