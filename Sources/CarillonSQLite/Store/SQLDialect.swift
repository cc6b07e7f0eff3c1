import CarillonCore

/// The parts of statements for which SQLite and PostgreSQL accept no common text.
enum SQLDialect {
    /// The last serial number that was assigned to a row of a table, also if the row was removed. NULL if the table
    /// never had a row.
    static func lastSerial(of table: String) -> String { "(SELECT seq FROM sqlite_sequence WHERE name = '\(table)')" }

    /// The next serial number for shard 0 of a table whose serial numbers contain a shard: the first multiple of 1,024 from 2^40
    /// on that is larger than all serial numbers that were assigned in the table, also to removed rows.
    static func nextSerialOfFirstShard(in table: String) -> String {
        let (first, count) = (Shard.firstWithShard, Shard.count)
        let next = "max((seq / \(count) + 1) * \(count), \(first))"
        return "coalesce((SELECT \(next) FROM sqlite_sequence WHERE name = '\(table)'), \(first))"
    }

    /// The numbers of a bound list, which is JSON text.
    static func numbers(of place: String) -> String { "(SELECT value FROM json_each(\(place)))" }

    /// The number of bytes of a text.
    static func byteCount(of column: String) -> String { "length(CAST(\(column) AS BLOB))" }
}
