import CarillonCore
import GRDB

/// Reads the facts that ``BindingRules`` needs, inside a transaction.
struct BindingReader {
    private let db: Database

    init(_ db: Database) { self.db = db }

    private static let columns = "binding.serial, binding.revision, binding.needs_resync, binding.ended_at"

    /// Reads a device and its bindings. The binding with the device's present user and the profile is marked.
    func beginFacts(of device: DeviceSerial, profile: String) throws -> BeginFacts {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns),
                coalesce(binding.user, '') = coalesce(device_profile.user, '') AND binding.profile = ?,
                device.app, app.ended_at, device_profile.user
            FROM device JOIN app ON app.serial = device.app
            LEFT JOIN device_profile ON device_profile.device = device.serial
            LEFT JOIN binding ON binding.device = device.serial
            WHERE device.serial = ?
            """)
        select.bind(profile)
        select.bind(device.rawValue)
        var facts = BeginFacts()
        try select.forEachRow { columns in
            facts.owner = BindingOwner(
                device: device, app: AppSerial(columns.integer(5)), user: columns.text(7).flatMap(UserID.init),
                isAppDeleted: columns.integerIfAny(6) != nil)
            // A device without bindings has one row without a binding.
            if columns.integerIfAny(0) != nil { facts.bindings.append(BindingRow(columns)) }
            return true
        }
        return facts
    }

    /// Reads the bindings of a device that did not end. The bindings of the user are marked.
    func openBindings(of device: DeviceSerial, user: UserID?) throws -> [BindingRow] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), coalesce(binding.user, '') = coalesce(?, '') FROM binding WHERE device = ? AND ended_at IS NULL
            """)
        select.bind(user?.text)
        select.bind(device.rawValue)
        return try select.all { columns in BindingRow(columns) }
    }

    /// Returns the bindings of a device with a completion that is not final, or that ended with the binding while its update
    /// is live.
    func unfinished(of device: DeviceSerial) throws -> Set<BindingSerial> {
        var select = try BoundStatement(
            db,
            """
            SELECT serial FROM binding WHERE device = ?
                AND EXISTS (SELECT 1 FROM completion LEFT JOIN audience_update ON audience_update.serial = in_update
                    WHERE completion.binding = binding.serial AND (state < \(CompletionMachine.State.done.rawValue)
                        OR state = \(CompletionMachine.State.gone.rawValue) AND audience_update.status = 0))
            """)
        select.bind(device.rawValue)
        return Set(try select.all { columns in BindingSerial(columns.integer(0)) })
    }

    func missedContent(of binding: BindingSerial) throws -> MissedContent {
        var select = try BoundStatement(
            db,
            """
            SELECT EXISTS (SELECT 1 FROM completion JOIN audience_update ON audience_update.serial = in_update
                    WHERE completion.binding = ? AND state = \(CompletionMachine.State.gone.rawValue) AND NOT has_left
                        AND audience_update.status = 3 AND kind = 'content'),
                EXISTS (SELECT 1 FROM completion JOIN audience_update ON audience_update.serial = in_update
                    WHERE completion.binding = ? AND state = \(CompletionMachine.State.expired.rawValue) AND attempt > 0
                        AND absorbed_by IS NULL AND kind = 'content')
            """)
        select.bind(binding.rawValue)
        select.bind(binding.rawValue)
        let missed = try select.first {
            MissedContent(endedWithBinding: $0.integer(0) != 0, isWithoutResult: $0.integer(1) != 0)
        }
        return missed ?? MissedContent(endedWithBinding: false, isWithoutResult: false)
    }

    /// Whether completions of the binding must still be released.
    func needsCleanup(_ binding: BindingSerial) throws -> Bool {
        var select = try BoundStatement(db, "SELECT 1 FROM binding WHERE serial = ? AND is_left_over")
        select.bind(binding.rawValue)
        return try select.run()
    }

    /// Returns nil if the binding ended.
    func heldFacts(of binding: BindingSerial) throws -> CursorFacts? {
        var select = try BoundStatement(
            db, "SELECT \(CursorFacts.columns) FROM binding WHERE binding.serial = ? AND binding.ended_at IS NULL")
        select.bind(binding.rawValue)
        return try select.first { CursorFacts($0, from: 0) }
    }

    /// See ``UpdateStore/bindingState(of:from:under:)``.
    func bindingState(of binding: BindingSerial, from first: UpdateSerial, under rules: Int64) throws -> BindingState? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(CompletionTable.columns), \(BindingTable.columns) FROM binding
            LEFT JOIN completion ON completion.binding = binding.serial
                AND in_update >= CASE WHEN held_by = ? AND held_to >= ? THEN held_to + 1 ELSE ? END
                AND EXISTS (SELECT 1 FROM audience_update WHERE audience_update.serial = in_update AND audience_update.status = 0)
            WHERE binding.serial = ? AND binding.ended_at IS NULL ORDER BY in_update, entry
            """)
        select.bind(rules)
        select.bind(first.rawValue)
        select.bind(first.rawValue)
        select.bind(binding.rawValue)
        var state: BindingState?
        try select.forEachRow { columns in
            if state == nil {
                state = BindingState(binding: UpdateBinding(columns, from: CompletionTable.columnCount))
            }
            // A binding without completions has one row without a completion.
            guard columns.integerIfAny(0) != nil else { return true }
            let completion = Completion(columns, from: 0)
            if state?.completions.last?.key.update == completion.key.update { state?.completions.removeLast() }
            state?.completions.append(completion)
            return true
        }
        return state
    }
}

extension CursorFacts {
    /// The columns that ``init(_:from:)`` reads, of a binding of the statement.
    static let columns = """
        binding.revision, held_to, held_by, seen_to, coalesce((SELECT max(expired.serial) FROM audience_update AS expired
            WHERE expired.app = binding.app AND expired.status = 3 AND expired.kind = 'content'), 0)
        """

    /// - Parameter place: The index of the first of ``columns``.
    init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            revision: columns.integer(place),
            cursor: AudienceCursor(UpdateSerial(columns.integer(place + 1)), rules: columns.integer(place + 2)),
            seenTo: UpdateSerial(columns.integer(place + 3)), lastExpired: UpdateSerial(columns.integer(place + 4)))
    }
}

extension BindingRow {
    /// - Parameter columns: The columns of a binding, and whether it is marked.
    fileprivate init(_ columns: StatementColumns) {
        self.init(
            serial: BindingSerial(columns.integer(0)), isOwn: columns.integer(4) != 0, revision: columns.integer(1),
            needsResync: columns.integer(2) != 0, endedAt: columns.integerIfAny(3).map(Timestamp.init(milliseconds:)))
    }
}
