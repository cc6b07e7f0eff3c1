import CarillonBasics
import CarillonCore
import GRDB
import Metrics

/// Writes the decisions of ``BindingRules``, inside a transaction.
struct BindingChangeWriter {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Returns the binding that began.
    @discardableResult
    func write(_ changes: BindingChanges) throws -> UpdateBinding? {
        for end in changes.ended { try write(end) }
        if let removed = changes.removed { try remove(removed) }
        switch changes.beginning {
        case .new(let new): return try insert(new)
        case .again(let again): return try write(again)
        case nil: return nil
        }
    }

    private func write(_ end: BindingChanges.End) throws {
        try db.run(
            """
            UPDATE binding SET ended_at = ?, locations = NULL, located_at = NULL, held_to = 0, is_left_over = ?, revision = ?,
                parameters_revision = NULL
            WHERE serial = ?
            """, [end.at.milliseconds, end.needsCleanup ? 1 : 0, end.revision, end.binding.rawValue])
    }

    private func remove(_ binding: BindingSerial) throws {
        try db.run("DELETE FROM binding WHERE serial = ?", [binding.rawValue])
        db.count(1, of: Self.removed)
    }

    private static let removed = ServerMetric.bindingsRemoved.counter()

    private func insert(_ new: BindingChanges.New) throws -> UpdateBinding? {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO binding (device, app, "user", profile, parameters, kinds, created_at, seen_to)
            VALUES (?, ?, ?, ?, ?, '', ?, \(BindingTable.end("?")))
            RETURNING \(BindingTable.columns)
            """)
        insert.bind(new.owner.device.rawValue)
        insert.bind(new.owner.app.rawValue)
        insert.bind(new.owner.user?.text)
        insert.bind(new.profile)
        insert.bind(ParameterValues().json.bytes)
        insert.bind(new.at.milliseconds)
        insert.bind(new.owner.app.rawValue)
        return try binding(from: &insert)
    }

    private func write(_ again: BindingChanges.Again) throws -> UpdateBinding? {
        try CompletionTable(db).beginAgain(again)
        var update = try BoundStatement(
            db,
            """
            UPDATE binding SET ended_at = NULL, is_left_over = FALSE, held_to = 0, revision = ?, needs_resync = ?
            WHERE serial = ?
            RETURNING \(BindingTable.columns)
            """)
        update.bind(again.revision)
        update.bind(again.needsResync ? 1 : 0)
        update.bind(again.binding.rawValue)
        return try binding(from: &update)
    }

    /// Runs a statement that returns one row.
    private func binding(from statement: inout BoundStatement) throws -> UpdateBinding? {
        try statement.all { columns in UpdateBinding(columns) }.last
    }

    /// Writes parameters and kinds. Returns false if the binding ended or has another revision than `before`.
    func write(_ binding: UpdateBinding, over before: Int64) throws -> Bool {
        var update = try BoundStatement(
            db,
            """
            UPDATE binding SET revision = ?, parameters_revision = ?, parameters = ?, locations = ?, located_at = ?, kinds = ?,
                held_to = ? WHERE serial = ? AND revision = ? AND ended_at IS NULL
            """)
        update.bind(binding.revision)
        update.bind(binding.parametersRevision)
        update.bind(binding.values.withoutLocations.json.bytes)
        update.bind(binding.values.hasLocation ? binding.values.locations.json.bytes : nil)
        update.bind(binding.locatedAt?.milliseconds)
        update.bind(binding.kinds.sorted().joined(separator: " "))
        update.bind(binding.cursor.place.rawValue)
        update.bind(binding.serial.rawValue)
        update.bind(before)
        try update.run()
        return db.changesCount == 1
    }

    func write(_ evaluated: CursorChange, of binding: BindingSerial) throws {
        var update = try BoundStatement(db, "UPDATE binding SET held_to = ?, held_by = ?, seen_to = ? WHERE serial = ?")
        update.bind(evaluated.cursor.place.rawValue)
        update.bind(evaluated.cursor.rules)
        update.bind(evaluated.seenTo.rawValue)
        update.bind(binding.rawValue)
        try update.run()
    }
}
