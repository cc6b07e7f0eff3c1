import CarillonCore
import CarillonWire
import GRDB
import GRDBSQLite

/// A prepared statement whose arguments are bound by position. It is used for operations on each message, because GRDB's
/// arguments, which support values of any kind, cost more than SQLite itself.
struct BoundStatement {
    private let db: Database
    /// Keeps the statement alive, because the connection may remove it from its cache.
    private let owner: Statement
    private let handle: SQLiteStatement
    private var place: Int32 = 0

    init(_ db: Database, _ sql: String) throws {
        self.db = db
        owner = try db.cachedStatement(sql: sql)
        handle = owner.sqliteStatement
        sqlite3_reset(handle)
    }

    /// Binds the next argument.
    mutating func bind(_ value: Int64?) {
        place += 1
        if let value { sqlite3_bind_int64(handle, place, value) } else { sqlite3_bind_null(handle, place) }
    }

    mutating func bind(_ value: Int?) { bind(value.map(Int64.init)) }

    mutating func bind(_ value: Double?) {
        place += 1
        if let value { sqlite3_bind_double(handle, place, value) } else { sqlite3_bind_null(handle, place) }
    }

    mutating func bind(_ value: String?) {
        place += 1
        guard var value else { return bindNull() }
        value.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                _ = sqlite3_bind_text(handle, place, characters.baseAddress, Int32(characters.count), Self.transient)
            }
        }
    }

    mutating func bind(_ value: [UInt8]?) {
        place += 1
        guard let value else { return bindNull() }
        // Empty bytes are also bound as a blob.
        guard !value.isEmpty else {
            sqlite3_bind_zeroblob(handle, place, 0)
            return
        }
        value.withUnsafeBytes { bytes in
            _ = sqlite3_bind_blob(handle, place, bytes.baseAddress, Int32(bytes.count), Self.transient)
        }
    }

    mutating func bind(_ value: Bytes16) {
        place += 1
        withUnsafeBytes(of: (value.high.bigEndian, value.low.bigEndian)) { bytes in
            _ = sqlite3_bind_blob(handle, place, bytes.baseAddress, Int32(bytes.count), Self.transient)
        }
    }

    private func bindNull() { sqlite3_bind_null(handle, place) }

    /// Runs the statement with the bound arguments, and returns whether there was a row. The next argument is bound to the first
    /// position again.
    ///
    /// - Throws: `DatabaseError`.
    @discardableResult mutating func run() throws -> Bool {
        var isThere = false
        try forEachRow { _ in
            isThere = true
            return false
        }
        return isThere
    }

    /// Runs the statement, and reads the first row if there is one.
    mutating func first<Value>(_ read: (StatementColumns) throws -> Value) throws -> Value? {
        var value: Value?
        try forEachRow { columns in
            value = try read(columns)
            return false
        }
        return value
    }

    /// Runs the statement, and reads its rows. A row that the closure reads as nil is left out.
    mutating func all<Value>(_ read: (StatementColumns) throws -> Value?) throws -> [Value] {
        var values: [Value] = []
        try forEachRow { columns in
            if let value = try read(columns) { values.append(value) }
            return true
        }
        return values
    }

    /// Runs an INSERT that returns the serial number of its only row.
    mutating func inserted() throws -> Int64 {
        var serial: Int64?
        try forEachRow { columns in
            serial = columns.integer(0)
            return true
        }
        guard let serial else { throw StoreFault(.unavailable, "a row was not inserted") }
        return serial
    }

    /// Runs the statement, and reads its rows until the closure returns false.
    mutating func forEachRow(_ wantsMore: (StatementColumns) throws -> Bool) throws {
        defer {
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
            place = 0
        }
        while true {
            switch sqlite3_step(handle) {
            case SQLITE_ROW: if try !wantsMore(StatementColumns(handle: handle)) { return }
            case SQLITE_DONE: return
            default: throw fault
            }
        }
    }

    private var fault: DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(db.sqliteConnection)),
            message: db.sqliteConnection.map { String(cString: sqlite3_errmsg($0)) })
    }

    /// SQLite copies the bound bytes.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
