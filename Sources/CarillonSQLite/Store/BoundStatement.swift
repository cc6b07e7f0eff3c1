import CarillonCore
import CarillonWire
import GRDB
import GRDBSQLite

/// A prepared statement that is bound by place, for what is done with each message: GRDB's arguments are made for values of any
/// kind, and cost more than SQLite does.
struct BoundStatement {
    private let db: Database
    /// Keeps the statement, which the connection may let go of meanwhile.
    private let owner: Statement
    private let handle: SQLiteStatement
    private var place: Int32 = 0

    init(_ db: Database, _ sql: String) throws {
        self.db = db
        owner = try db.cachedStatement(sql: sql)
        handle = owner.sqliteStatement
        sqlite3_reset(handle)
    }

    /// Binds the next place.
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
        // Bytes that are none are bound as a blob all the same.
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

    /// Runs the statement with what was bound, and answers whether there was a row; the next value is bound to the first place
    /// again.
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

    /// The same; reads the first row, if there is one.
    mutating func first<Value>(_ read: (StatementColumns) throws -> Value) throws -> Value? {
        var value: Value?
        try forEachRow { columns in
            value = try read(columns)
            return false
        }
        return value
    }

    /// Runs an INSERT that returns the serial of its only row.
    mutating func inserted() throws -> Int64 {
        var serial: Int64?
        try forEachRow { columns in
            serial = columns.integer(0)
            return true
        }
        guard let serial else { throw StoreFault(.unavailable, "a row was not inserted") }
        return serial
    }

    /// The same; reads row after row, until no more are wanted.
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

    /// SQLite copies what is bound.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
