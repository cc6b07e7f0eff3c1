import CarillonCore
import GRDB

/// The table `counter`, inside a transaction: the numbers of rows or bytes of an app or of the whole store. A change of the rows
/// changes the number in the same transaction.
///
/// Each home has a row of its own for a number, so that the commits of several homes do not wait for each other. The number is
/// the sum of these rows. A row is negative if its home removed rows that another home added.
struct CounterTable {
    typealias Change = (name: CounterName, value: Int)

    /// The app of numbers of the whole store. No app has this serial number.
    private static let store = AppSerial(0)

    private let db: Database
    private let home = WritingHome.node.rawValue

    init(_ db: Database) { self.db = db }

    /// Returns a part of a statement that reads a number.
    ///
    /// - Parameter app: The column with the serial number of the app, or its parameter in the statement.
    static func sum(_ name: CounterName, of app: String) -> String {
        "(SELECT coalesce(sum(counter.value), 0) FROM counter WHERE counter.app = \(app) AND counter.name = \(name.sql))"
    }

    /// Adds to numbers of an app, in one statement.
    func add(_ changes: [Change], to app: AppSerial) throws {
        let rows = changes.map { "(?, \($0.name.sql), ?, ?)" }.joined(separator: ", ")
        var insert = try BoundStatement(db, Self.addition(of: rows))
        for change in changes {
            insert.bind(app.rawValue)
            insert.bind(home)
            insert.bind(change.value)
        }
        try insert.run()
    }

    /// Adds to numbers of an app that become zero, and removes their rows. Runs one statement if no other home has rows for the
    /// numbers.
    func empty(_ changes: [Change], of app: AppSerial) throws {
        let conditions = changes.map { "name = \($0.name.sql) AND value = ?" }.joined(separator: " OR ")
        var delete = try BoundStatement(
            db, "DELETE FROM counter WHERE app = ? AND home = ? AND (\(conditions)) RETURNING name")
        delete.bind(app.rawValue)
        delete.bind(home)
        for change in changes { delete.bind(-change.value) }
        let removed = Set(try delete.all { columns in columns.text(0) })
        let others = changes.filter { $0.value != 0 && !removed.contains($0.name.rawValue) }
        guard !others.isEmpty else { return }
        try add(others, to: app)
        // The rows of a removed app whose sum is zero are removed only here.
        let names = others.map(\.name.sql).joined(separator: ", ")
        try db.run(
            "DELETE FROM counter WHERE app = ?1 AND name IN (\(names)) AND NOT EXISTS (SELECT 1 FROM app WHERE serial = ?1)",
            [app.rawValue])
    }

    /// Removes the numbers of a removed app that do not change any more. Callbacks can still be waiting.
    func remove(_ app: AppSerial) throws {
        let names = [CounterName.devices, .items, .subscriptions, .watches].map(\.sql).joined(separator: ", ")
        try db.run("DELETE FROM counter WHERE app = ? AND name IN (\(names))", [app.rawValue])
    }

    private static func addition(of rows: String) -> String {
        """
        INSERT INTO counter (app, name, home, value) VALUES \(rows)
        ON CONFLICT (app, name, home) DO UPDATE SET value = counter.value + excluded.value
        """
    }

    // MARK: The whole store

    func waiting() throws -> InboxUsage.Waiting {
        let store = String(Self.store.rawValue)
        var select = try BoundStatement(
            db, "SELECT \(Self.sum(.envelopes, of: store)), \(Self.sum(.envelopeBytes, of: store))")
        return try select.first { InboxUsage.Waiting(envelopes: Int($0.integer(0)), bytes: Int($0.integer(1))) }
            ?? InboxUsage.Waiting()
    }

    func add(_ waiting: InboxUsage.Waiting) throws {
        try add([(.envelopes, waiting.envelopes), (.envelopeBytes, waiting.bytes)], to: Self.store)
    }

    // MARK: Attachments

    /// Returns the used bytes of a quota, or of the whole app if the name is empty.
    func attachmentBytes(of allowance: String, in app: AppSerial) throws -> Int64 {
        let select = "SELECT coalesce(sum(value), 0) FROM counter WHERE app = ? AND name = ?"
        return try Int64.first(db, select, [app.rawValue, Self.name(of: allowance)]) ?? 0
    }

    /// Adds to the used bytes of a quota. A row that becomes zero is removed.
    func add(attachmentBytes bytes: Int64, of allowance: String, in app: AppSerial) throws {
        var insert = try BoundStatement(db, Self.addition(of: "(?, ?, ?, ?)") + " RETURNING value")
        insert.bind(app.rawValue)
        insert.bind(Self.name(of: allowance))
        insert.bind(home)
        insert.bind(bytes)
        guard try insert.first({ $0.integer(0) }) == 0 else { return }
        try db.run(
            "DELETE FROM counter WHERE app = ? AND name = ? AND home = ?", [app.rawValue, Self.name(of: allowance), home])
    }

    private static func name(of allowance: String) -> String { "attachment_bytes:" + allowance }
}
