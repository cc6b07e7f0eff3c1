import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Row {
    // Columns are read by position for each message or connection, because finding a column by its name costs more than the row.

    /// Reads a value from the first row without copying the row.
    static func first<Value>(
        _ statement: Statement, _ arguments: StatementArguments, _ read: (Row) throws -> Value
    ) throws -> Value? {
        let rows = try fetchCursor(statement, arguments: arguments)
        // A row is valid as long as its cursor exists.
        return try withExtendedLifetime(rows) { try rows.next().map(read) }
    }

    func bytes(at place: Int) -> [UInt8]? { (self[place] as Data?).map(Array.init) }

    func bytes16(at place: Int) throws -> Bytes16 {
        guard let bytes = self[place] as Data?, let value = Bytes16(bytes) else {
            throw StoreFault(.unavailable, "column \(place) does not have 16 bytes")
        }
        return value
    }

    func timestamp(at place: Int) -> Timestamp { Timestamp(milliseconds: self[place]) }

    func bytes(_ column: String) -> [UInt8]? { (self[column] as Data?).map(Array.init) }

    func bytes16(_ column: String) throws -> Bytes16 {
        guard let bytes = bytes(column), let value = Bytes16(bytes) else {
            throw StoreFault(.unavailable, "the column \(column) does not have 16 bytes")
        }
        return value
    }

    func timestamp(_ column: String) -> Timestamp { Timestamp(milliseconds: self[column]) }
}

extension Bytes16 {
    var data: Data { Data(bytes) }
}
