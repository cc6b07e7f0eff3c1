import CarillonCore
import CarillonWire
import GRDB

/// The completions of updates for bindings, inside a transaction.
struct CompletionTable {
    let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Reading

    static let columns = """
        in_update, completion.binding, entry, state, attempt, failures, first_failed_at, due_at, reason, changed_at,
        completion.order_key, has_left, is_received
        """
    static let columnCount: Int32 = 13

    func completion(_ key: CompletionKey) throws -> Completion? {
        var select = try BoundStatement(
            db, "SELECT \(Self.columns) FROM completion WHERE binding = ? AND in_update = ? AND entry = ?")
        select.bind(key.binding.rawValue)
        select.bind(key.update.rawValue)
        select.bind(key.entry)
        return try select.first { Completion($0, from: 0) }
    }

    /// Returns the last entry of an update.
    func last(of binding: BindingSerial, _ update: UpdateSerial) throws -> Completion? {
        var select = try BoundStatement(
            db,
            "SELECT \(Self.columns) FROM completion WHERE binding = ? AND in_update = ? ORDER BY entry DESC LIMIT 1")
        select.bind(binding.rawValue)
        select.bind(update.rawValue)
        return try select.first { Completion($0, from: 0) }
    }

    func unfinished(of binding: BindingSerial, limit: Int = .max) throws -> [Completion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM completion \(IndexHint.sql("completion_unfinished"))
            WHERE binding = ? AND state < 10 ORDER BY in_update LIMIT ?
            """)
        select.bind(binding.rawValue)
        select.bind(limit)
        return try select.all { Completion($0, from: 0) }
    }

    func isAnyDue(of binding: BindingSerial, at now: Timestamp) throws -> Bool {
        var select = try BoundStatement(
            db,
            """
            SELECT 1 FROM completion \(IndexHint.sql("completion_unfinished"))
            WHERE binding = ? AND state < 10 AND due_at IS NOT NULL AND due_at <= ? LIMIT 1
            """)
        select.bind(binding.rawValue)
        select.bind(now.milliseconds)
        return try select.run()
    }

    /// The condition that a completion of a binding of the statement is due at a bound time.
    static let dueExists = """
        EXISTS (SELECT 1 FROM completion \(IndexHint.sql("completion_unfinished"))
            WHERE completion.binding = binding.serial AND completion.state < 10 AND due_at IS NOT NULL AND due_at <= ?)
        """

    /// Returns completions of an update in one state, in the order of their bindings.
    func page(
        of update: UpdateSerial, in state: CompletionMachine.State, after: CompletionKey?, limit: Int
    ) throws -> [DeviceCompletion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), device.id, binding.user, binding.profile FROM completion \(IndexHint.sql("completion_of_update"))
            JOIN binding ON binding.serial = completion.binding JOIN device ON device.serial = binding.device
            WHERE in_update = ? AND state = ? AND (completion.binding, entry) > (?, ?)
            ORDER BY completion.binding, entry LIMIT ?
            """)
        select.bind(update.rawValue)
        select.bind(state.rawValue)
        select.bind(after?.binding.rawValue ?? 0)
        select.bind(after?.entry ?? 0)
        select.bind(limit)
        return try select.all { columns in
            try DeviceCompletion(
                device: DeviceID(columns.bytes16(Self.columnCount)),
                user: columns.text(Self.columnCount + 1).flatMap(UserID.init),
                profile: columns.text(Self.columnCount + 2) ?? "", completion: Completion(columns, from: 0))
        }
    }

    /// Returns the completions of an update for one device, with all its users and profiles.
    func completions(of update: UpdateSerial, at device: DeviceID) throws -> [Completion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM binding JOIN completion ON completion.binding = binding.serial AND in_update = ?
            WHERE binding.device = (SELECT serial FROM device WHERE id = ?)
            """)
        select.bind(update.rawValue)
        select.bind(device.value)
        return try select.all { columns in Completion(columns, from: 0) }
    }

    /// Returns the waiting envelope of a completion.
    func envelope(of key: CompletionKey) throws -> MessageID? {
        var select = try BoundStatement(
            db,
            """
            SELECT position, secret FROM envelope WHERE origin_kind = \(Origin.Kind.update.rawValue) AND origin = ?
                AND device = (SELECT device FROM binding WHERE serial = ?) AND topic = ? AND topic IS NOT NULL
            """)
        select.bind(key.update.rawValue)
        select.bind(key.binding.rawValue)
        select.bind(key.topic)
        return try select.first { MessageID(position: $0.integer(0), secret: try $0.bytes16(1)) }
    }

    /// Returns the completions of content that the device has not received.
    func unreceivedContent(of binding: BindingSerial) throws -> (completions: [Completion], resync: UpdateSerial?) {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), is_resync FROM completion \(IndexHint.sql("completion_unfinished"))
            JOIN audience_update ON audience_update.serial = in_update AND audience_update.kind = 'content'
            WHERE completion.binding = ? AND completion.state < 10 AND completion.state = 0 AND NOT is_received
            ORDER BY in_update
            """)
        select.bind(binding.rawValue)
        var found: (completions: [Completion], resync: UpdateSerial?) = ([], nil)
        try select.forEachRow { columns in
            let completion = Completion(columns, from: 0)
            if columns.integer(Self.columnCount) != 0 {
                found.resync = completion.key.update
            } else {
                found.completions.append(completion)
            }
            return true
        }
        return found
    }

    // MARK: Changes of many rows

    /// Marks expired completions of a binding as coalesced into an update, so that the device is not notified of them again: the
    /// completions of one update, or all.
    func markCoalesced(
        _ update: UpdateSerial, forExpiredOf binding: BindingSerial, _ expired: UpdateSerial? = nil
    ) throws {
        try db.run(
            """
            UPDATE completion SET absorbed_by = ?1 WHERE binding = ?2 AND in_update = coalesce(?3, in_update)
                AND state = \(CompletionMachine.State.expired.rawValue) AND absorbed_by IS NULL
            """, [update.rawValue, binding.rawValue, expired?.rawValue])
    }

    /// If several completions of an order key are due at once, only the first one stays due. The others wait for it, as if they
    /// had never been delivered.
    func lineUp(_ binding: BindingSerial) throws {
        try db.run(
            """
            UPDATE completion SET due_at = NULL, attempt = 0
            WHERE binding = ? AND order_key IS NOT NULL AND state = 0 AND due_at IS NOT NULL
                AND EXISTS (SELECT 1 FROM completion AS earlier \(IndexHint.sql("completion_order"))
                    WHERE earlier.binding = completion.binding AND earlier.order_key = completion.order_key
                        AND earlier.order_key IS NOT NULL AND earlier.state < 4
                        AND (earlier.in_update, earlier.entry) < (completion.in_update, completion.entry))
            """, [binding.rawValue])
    }
}

extension Completion {
    /// - Parameter place: The index of the first of ``CompletionTable/columns``.
    init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            key: CompletionKey(
                update: UpdateSerial(columns.integer(place)), binding: BindingSerial(columns.integer(place + 1)),
                entry: Int(columns.integer(place + 2))),
            machine: CompletionMachine(
                CompletionMachine.State(rawValue: Int(columns.integer(place + 3))) ?? .gone,
                attempt: Int(columns.integer(place + 4)), isReceived: columns.integer(place + 12) != 0,
                failures: Int(columns.integer(place + 5)),
                firstFailedAt: columns.integerIfAny(place + 6).map(Timestamp.init(milliseconds:)),
                dueAt: columns.integerIfAny(place + 7).map(Timestamp.init(milliseconds:)), reason: columns.text(place + 8)),
            changedAt: columns.timestamp(place + 9), orderKey: columns.text(place + 10),
            hasLeftAudience: columns.integer(place + 11) != 0)
    }
}
