import CarillonCore
import CarillonWire
import GRDB

/// What becomes of completions when a device leaves audiences, returns to them, or does not process a kind any more.
extension CompletionTable {
    /// Whether a binding did not end, and is of a revision.
    func isOpen(_ binding: BindingSerial, revision: Int64) throws -> Bool {
        var select = try BoundStatement(
            db, "SELECT 1 FROM binding WHERE serial = ? AND revision = ? AND ended_at IS NULL")
        select.bind(binding.rawValue)
        select.bind(revision)
        return try select.run()
    }

    /// Answers what of them is in the inbox, and must be taken out in the same transaction.
    func left(_ keys: [CompletionKey], at now: Timestamp) throws -> [MessageID] {
        var envelopes: [MessageID] = []
        for key in keys {
            guard let before = try completion(key), !before.hasLeft || !before.machine.state.isFinal else { continue }
            if before.machine.isInInbox, let envelope = try envelope(of: key) { envelopes.append(envelope) }
            var machine = before.machine
            if machine.left(at: now) {
                try remove(before, at: now)
            } else {
                try change(before, to: machine, hasLeft: true, at: now)
            }
        }
        return envelopes
    }

    func returned(_ keys: [CompletionKey], of binding: BindingSerial, at now: Timestamp) throws {
        for key in keys {
            guard let before = try completion(key), before.hasLeft, try isLive(key.update, at: now) else { continue }
            var machine = before.machine
            machine.returned(at: now)
            try change(before, to: machine, hasLeft: false, at: now)
        }
        try lineUp(binding)
    }

    /// Answers what of them is in the inbox, and must be taken out in the same transaction.
    func unsupported(_ keys: [CompletionKey], at now: Timestamp) throws -> [MessageID] {
        var envelopes: [MessageID] = []
        for key in keys {
            guard let before = try completion(key) else { continue }
            if before.machine.isInInbox, let envelope = try envelope(of: key) { envelopes.append(envelope) }
            var machine = before.machine
            guard machine.ended(as: .unsupported) else { continue }
            try change(before, to: machine, at: now)
        }
        return envelopes
    }

    /// Completions of live updates that hold up others, and whose kinds are not among these.
    func unfinished(of binding: BindingSerial, outside kinds: Set<String>) throws -> [CompletionKey] {
        var select = try BoundStatement(
            db,
            """
            SELECT in_update, entry FROM completion INDEXED BY completion_unfinished
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

    /// A device processes other kinds: completions of unknown kinds end, and completions that ended for that and are of known kinds are due.
    /// Returns the envelopes that must be taken out of the inbox.
    func followKinds(of binding: UpdateBinding, at now: Timestamp) throws -> [MessageID] {
        let unknown = try unsupported(try unfinished(of: binding.serial, outside: binding.kinds), at: now)
        try db.run(
            """
            UPDATE completion SET state = 0, due_at = ?
            WHERE binding = ? AND state = \(CompletionMachine.State.unsupported.rawValue)
                AND EXISTS (SELECT 1 FROM audience_update
                    WHERE serial = in_update AND status = 0 AND instr(?, ' ' || kind || ' ') > 0)
            """,
            [now.milliseconds, binding.serial.rawValue, " " + binding.kinds.sorted().joined(separator: " ") + " "])
        try lineUp(binding.serial)
        return unknown
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
