import CarillonCore
import GRDB

/// Writes the decisions of ``CompletionRules``, inside a transaction.
struct CompletionChangeWriter {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func write(_ changes: CompletionChanges) throws {
        if let coalesced = changes.coalesced { try write(coalesced) }
        if let removed = changes.removed { try remove(removed) }
        if let inserted = changes.inserted {
            try insert(inserted)
            if let entry = changes.forgottenEntry { try forgetEntries(of: inserted.key, upTo: entry) }
        }
        for (key, completion) in changes.changed { try update(completion, isRevived: changes.revived.contains(key)) }
        if let binding = changes.needsResync { try BindingTable(db).missed(binding) }
    }

    private func insert(_ completion: Completion) throws {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO completion (in_update, binding, entry, state, attempt, failures, first_failed_at, due_at, reason,
                changed_at, order_key, has_left, absorbed_by, is_received) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        let key = completion.key
        insert.bind(key.update.rawValue)
        insert.bind(key.binding.rawValue)
        insert.bind(key.entry)
        insert.bindState(of: completion)
        insert.bind(completion.orderKey)
        insert.bind(completion.hasLeftAudience ? 1 : 0)
        insert.bind(completion.coalescedBy?.rawValue)
        insert.bind(completion.machine.isReceived ? 1 : 0)
        try insert.run()
    }

    private func forgetEntries(of key: CompletionKey, upTo entry: Int) throws {
        try db.run(
            "DELETE FROM completion WHERE binding = ? AND in_update = ? AND entry <= ? AND state >= 10",
            [key.binding.rawValue, key.update.rawValue, entry])
    }

    private func update(_ completion: Completion, isRevived: Bool) throws {
        var update = try BoundStatement(
            db,
            """
            UPDATE completion SET state = ?, attempt = ?, failures = ?, first_failed_at = ?, due_at = ?, reason = ?,
                changed_at = ?, has_left = ?, is_received = ?\(isRevived ? ", absorbed_by = NULL" : "")
            WHERE binding = ? AND in_update = ? AND entry = ?
            """)
        let key = completion.key
        update.bindState(of: completion)
        update.bind(completion.hasLeftAudience ? 1 : 0)
        update.bind(completion.machine.isReceived ? 1 : 0)
        update.bind(key.binding.rawValue)
        update.bind(key.update.rawValue)
        update.bind(key.entry)
        try update.run()
    }

    /// Changes the due time of a completion.
    func putOff(_ key: CompletionKey, until moment: Timestamp) throws {
        try db.run(
            "UPDATE completion SET due_at = ? WHERE binding = ? AND in_update = ? AND entry = ?",
            [moment.milliseconds, key.binding.rawValue, key.update.rawValue, key.entry])
    }

    private func remove(_ key: CompletionKey) throws {
        try db.run(
            "DELETE FROM completion WHERE binding = ? AND in_update = ? AND entry = ?",
            [key.binding.rawValue, key.update.rawValue, key.entry])
    }

    /// Marks a completion as coalesced into a later update, together with the completions that it replaced.
    private func write(_ coalescence: CompletionChanges.Coalescence) throws {
        let key = coalescence.key
        try db.run(
            "UPDATE completion SET absorbed_by = ?1 WHERE binding = ?2 AND (in_update = ?3 AND entry = ?4 OR absorbed_by = ?3)",
            [coalescence.coalescer.rawValue, key.binding.rawValue, key.update.rawValue, key.entry])
    }
}

extension BoundStatement {
    /// Binds the columns from `state` to `changed_at`, in the order that inserts and updates share.
    fileprivate mutating func bindState(of completion: Completion) {
        let machine = completion.machine
        bind(machine.state.rawValue)
        bind(machine.attempt)
        bind(machine.failures)
        bind(machine.firstFailedAt?.milliseconds)
        bind(machine.dueAt?.milliseconds)
        bind(machine.reason)
        bind(completion.changedAt.milliseconds)
    }
}
