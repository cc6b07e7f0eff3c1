import CarillonCore
import CarillonWire
import GRDB

/// Changes many completions when a binding begins again, or processes other kinds.
extension CompletionTable {
    /// Returns unfinished completions of live updates whose kinds are not among these.
    func unfinished(of binding: BindingSerial, outside kinds: Set<String>) throws -> [CompletionKey] {
        var select = try BoundStatement(
            db,
            """
            SELECT in_update, entry FROM completion \(IndexHint.sql("completion_unfinished"))
            JOIN audience_update ON audience_update.serial = in_update AND audience_update.status = 0
            WHERE binding = ?2 AND state < 10 AND state < \(CompletionMachine.State.parked.rawValue)
                AND \(Self.list("?1", hasKind: false))
            ORDER BY in_update, entry
            """)
        select.bind(Self.list(of: kinds))
        select.bind(binding.rawValue)
        return try select.all { columns in
            CompletionKey(
                update: UpdateSerial(columns.integer(0)), binding: binding, entry: Int(columns.integer(1)))
        }
    }

    /// Makes completions due that ended because their kinds were unsupported, if their updates are live and of kinds of the
    /// binding.
    func returnSupported(of binding: UpdateBinding, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE completion SET state = 0, due_at = ?2
            WHERE binding = ?3 AND state = \(CompletionMachine.State.unsupported.rawValue)
                AND EXISTS (SELECT 1 FROM audience_update
                    WHERE serial = in_update AND status = 0 AND \(Self.list("?1", hasKind: true)))
            """,
            [Self.list(of: binding.kinds), now.milliseconds, binding.serial.rawValue])
        try lineUp(binding.serial)
    }

    /// Returns the kinds as text, with a space before and after each of them.
    private static func list(of kinds: Set<String>) -> String { " " + kinds.sorted().joined(separator: " ") + " " }

    /// Returns the condition that a list contains the kind of an update: the list without the kind is another text.
    private static func list(_ list: String, hasKind: Bool) -> String {
        "replace(\(list), ' ' || kind || ' ', '') \(hasKind ? "<>" : "=") \(list)"
    }

    func beginAgain(_ again: BindingChanges.Again) throws {
        let gone = "binding = ? AND state = \(CompletionMachine.State.gone.rawValue) AND NOT has_left"
        if again.expiresContent {
            try db.run(
                """
                UPDATE completion SET state = \(CompletionMachine.State.expired.rawValue) WHERE \(gone)
                    AND EXISTS (SELECT 1 FROM audience_update WHERE serial = in_update AND status = 3 AND kind = 'content')
                """, [again.binding.rawValue])
        }
        try db.run(
            """
            UPDATE completion SET state = 0, due_at = ? WHERE \(gone)
                AND EXISTS (SELECT 1 FROM audience_update WHERE serial = in_update AND status = 0)
            """, [again.at.milliseconds, again.binding.rawValue])
        try lineUp(again.binding)
    }
}
