/// The parts of statements that SQLite and PostgreSQL write differently, where no text is accepted by both.
enum SQLDialect {
    /// The last serial that was assigned to a row of a table, also if the row was removed; NULL if there was none.
    static func lastSerial(of table: String) -> String { "(SELECT seq FROM sqlite_sequence WHERE name = '\(table)')" }

    /// The numbers of a bound list, which is text in JSON.
    static func numbers(of place: String) -> String { "(SELECT value FROM json_each(\(place)))" }

    /// The number of bytes of a text.
    static func byteCount(of column: String) -> String { "length(CAST(\(column) AS BLOB))" }
}
