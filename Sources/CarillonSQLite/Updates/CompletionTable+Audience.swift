import CarillonCore
import CarillonWire
import GRDB

/// Changes of many completions when a binding begins again, or processes other kinds.
extension CompletionTable {
    /// Completions of live updates that hold up others, and whose kinds are not among these.
    func unfinished(of binding: BindingSerial, outside kinds: Set<String>) throws -> [CompletionKey] {
        var select = try BoundStatement(
            db,
            """
            SELECT in_update, entry FROM completion \(IndexHint.sql("completion_unfinished"))
            JOIN audience_update ON audience_update.serial = in_update AND audience_update.status = 0
            WHERE binding = ? AND state < 10 AND state < \(CompletionMachine.State.parked.rawValue)
                AND instr(?, ' ' || kind || ' ') = 0
            ORDER BY in_update, entry
            """)
        select.bind(binding.rawValue)
        select.bind(" " + kinds.sorted().joined(separator: " ") + " ")
        var found: [CompletionKey] = []
        try select.forEachRow { columns in
            found.append(
                CompletionKey(
                    update: UpdateSerial(columns.integer(0)), binding: binding, entry: Int(columns.integer(1))))
            return true
        }
        return found
    }

    /// Completions that ended because their kinds were unknown are due, if their updates are live and of kinds of the binding.
    func returnSupported(of binding: UpdateBinding, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE completion SET state = 0, due_at = ?
            WHERE binding = ? AND state = \(CompletionMachine.State.unsupported.rawValue)
                AND EXISTS (SELECT 1 FROM audience_update
                    WHERE serial = in_update AND status = 0 AND instr(?, ' ' || kind || ' ') > 0)
            """,
            [now.milliseconds, binding.serial.rawValue, " " + binding.kinds.sorted().joined(separator: " ") + " "])
        try lineUp(binding.serial)
    }

    func beginAgain(_ again: BindingChanges.Again) throws {
        let gone = "binding = ? AND state = \(CompletionMachine.State.gone.rawValue) AND has_left = 0"
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
