import CarillonCore
import Foundation
import GRDB
import TestStores
import Testing

@testable import CarillonSQLite

/// The lists that name every table: the data that ends with a user, and when rows are removed.
struct UserChangeListTests {
    private static func page(_ name: String) throws -> [String] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("docs/\(name)"), encoding: .utf8)
        return text.split(separator: "\n").map(String.init)
    }

    private static func tables(_ condition: String = "TRUE") throws -> Set<String> {
        let queue = try DatabaseQueue()
        try queue.write { db in try Schema.bringUpToDate(db) }
        return try queue.read { db in
            let names = try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_master AS own
                    WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND \(condition)
                    """)
            return Set(names)
        }
    }

    @Test func `every table with a column for a device is in the list of data that ends with a user`() throws {
        let ofDevices = try Self.tables(
            """
            (EXISTS (SELECT 1 FROM pragma_table_info(own.name) WHERE name IN ('device', 'consumer', 'provider', 'reader'))
                OR EXISTS (SELECT 1 FROM pragma_foreign_key_list(own.name) WHERE "table" IN ('device', 'binding', 'channel',
                    'subscription', 'push', 'attachment', 'service_provider')))
            """)
        let listed = Set(DeviceTable.allCases.map(\.rawValue))
        #expect(ofDevices.count > 20)
        #expect(ofDevices.subtracting(listed).isEmpty)
        #expect(try listed.subtracting(Self.tables()).isEmpty, "a table that does not exist")
    }

    @Test func `the page on users shows the list, row by row`() throws {
        let prefixes = ["| envelope `", "| file: ", "| table `"]
        let rows = try Self.page("users.md").filter { line in prefixes.contains { line.hasPrefix($0) } }
        #expect(rows == UserChange.rows)
        #expect(Set(rows).count == EnvelopeKind.allCases.count + UserChange.File.allCases.count + DeviceTable.allCases.count)
    }

    @Test func `the page on guarantees lists for every table when a row is removed`() throws {
        let lines = try Self.page("guarantees.md")
        let start = try #require(lines.firstIndex { $0.hasPrefix("| Table | A row is removed |") })
        let rows = lines[(start + 2)...].prefix { $0.hasPrefix("| `") }
        let named = rows.flatMap { row in
            row.split(separator: "|")[0].split(separator: "`").map(String.init).filter { $0.contains { $0.isLetter } }
        }
        #expect(try Set(named) == Self.tables())
        #expect(named.count == Set(named).count)
    }
}
