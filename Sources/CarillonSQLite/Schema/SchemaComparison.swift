import CarillonCore
import GRDB
import Synchronization

/// Compares the tables, indexes and triggers of a file with the result of this version's steps.
///
/// A file can have this version's number and other tables if a step was changed after a program had used it.
enum SchemaComparison {
    /// An entry of a schema.
    private struct Entry: Sendable {
        /// "table", "index" or "trigger".
        var type: String
        var table: String
        var definition: String

        func isLike(_ other: Entry) -> Bool {
            guard type == other.type, table == other.table else { return false }
            return definition == other.definition || normalized(definition) == normalized(other.definition)
        }
    }

    /// The schema of this version; nil until it is made in this process.
    private static let made = Mutex<[String: Entry]?>(nil)

    /// Compares the schema of an open file, within the transaction of the caller.
    ///
    /// - Throws: ``StoreOpenFault`` with the name of the first table that differs.
    static func check(_ db: Database, path: String) throws {
        let expected = try expected()
        let found = try entries(of: db)
        let names = Set(expected.keys).union(found.keys).sorted()
        for name in names {
            switch (expected[name], found[name]) {
            case (let wanted?, let present?) where wanted.isLike(present): continue
            case (let wanted?, nil): throw StoreOpenFault.different(path, table: wanted.table, lacking(wanted, name))
            case (let wanted?, _?): throw StoreOpenFault.different(path, table: wanted.table, "differs")
            case (nil, let present): throw StoreOpenFault.different(path, table: present?.table ?? name, "is unknown")
            }
        }
    }

    private static func lacking(_ entry: Entry, _ name: String) -> String {
        entry.type == "table" ? "is missing" : "lacks the \(entry.type) \"\(name)\""
    }

    private static func expected() throws -> [String: Entry] {
        if let made = made.withLock({ $0 }) { return made }
        let queue = try DatabaseQueue()
        let expected = try queue.write { db in
            try Schema.bringUpToDate(db)
            return try entries(of: db)
        }
        try queue.close()
        made.withLock { $0 = expected }
        return expected
    }

    /// Returns the entries of the schema without SQLite's own tables and indexes.
    private static func entries(of db: Database) throws -> [String: Entry] {
        var entries: [String: Entry] = [:]
        let rows = try Row.fetchCursor(
            db, sql: "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
        while let row = try rows.next() {
            entries[row[1]] = Entry(type: row[0], table: row[2], definition: row[3])
        }
        return entries
    }

    /// Removes the parts of a definition that have no effect: comments, white space, and quotes around names, which SQLite adds
    /// to renamed tables.
    static func normalized(_ definition: String) -> String {
        definition.split(separator: "\n").map { line in line[..<(line.firstRange(of: "--")?.lowerBound ?? line.endIndex)] }
            .joined(separator: " ").filter { $0 != "\"" }.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
