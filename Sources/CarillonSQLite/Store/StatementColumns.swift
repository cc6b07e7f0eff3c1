import CarillonCore
import CarillonWire
import GRDB
import GRDBSQLite

/// A row of a ``BoundStatement``, with its columns by position. It is valid until the statement moves to another row.
struct StatementColumns {
    let handle: SQLiteStatement

    func integer(_ place: Int32) -> Int64 { sqlite3_column_int64(handle, place) }

    func timestamp(_ place: Int32) -> Timestamp { Timestamp(milliseconds: integer(place)) }

    func integerIfAny(_ place: Int32) -> Int64? { isNull(place) ? nil : integer(place) }

    func doubleIfAny(_ place: Int32) -> Double? { isNull(place) ? nil : sqlite3_column_double(handle, place) }

    func text(_ place: Int32) -> String? {
        guard let start = sqlite3_column_text(handle, place) else { return nil }
        let count = Int(sqlite3_column_bytes(handle, place))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Returns nil for NULL, but not for an empty blob.
    func bytes(_ place: Int32) -> [UInt8]? { isNull(place) ? nil : blob(place).map(Array.init) ?? [] }

    func bytes16(_ place: Int32) throws -> Bytes16 {
        guard let blob = blob(place), let value = Bytes16(blob) else {
            throw StoreFault(.unavailable, "column \(place) does not have 16 bytes")
        }
        return value
    }

    private func isNull(_ place: Int32) -> Bool { sqlite3_column_type(handle, place) == SQLITE_NULL }

    private func blob(_ place: Int32) -> UnsafeRawBufferPointer? {
        guard let start = sqlite3_column_blob(handle, place) else { return nil }
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, place)))
    }
}
