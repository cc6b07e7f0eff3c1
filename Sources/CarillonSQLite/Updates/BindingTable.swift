import CarillonBasics
import CarillonCore
import CarillonWire
import GRDB
import Metrics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Devices with their users and profiles, inside a transaction.
struct BindingTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    static let columns = """
        binding.serial, binding.device, binding.user, binding.profile, binding.revision, parameters_revision, binding.parameters,
        located_at, kinds, held_to, held_by, locations, seen_to, needs_resync, received_to, updates_to
        """
    static let columnCount: Int32 = 16

    /// That of a device with its present user.
    func present(of device: DeviceSerial, profile: String) throws -> UpdateBinding? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM binding
            WHERE device = ? AND coalesce(user, '') = coalesce((SELECT user FROM device_profile WHERE device = ?), '')
                AND profile = ? AND ended_at IS NULL
            """)
        select.bind(device.rawValue)
        select.bind(device.rawValue)
        select.bind(profile)
        return try select.first(UpdateBinding.init)
    }

    /// The one that a device came with last, unless it ended, or was another user's.
    func presentOfUser(_ device: DeviceSerial) throws -> UpdateBinding? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM binding
            WHERE device = ?1 AND coalesce(user, '') = coalesce((SELECT user FROM device_profile WHERE device = ?1), '')
                AND ended_at IS NULL
            """)
        select.bind(device.rawValue)
        return try select.first(UpdateBinding.init)
    }

    /// The one that a device came with last, unless it ended.
    func present(of device: DeviceSerial) throws -> UpdateBinding? {
        var select = try BoundStatement(
            db, "SELECT \(Self.columns) FROM binding WHERE device = ? AND ended_at IS NULL ORDER BY serial DESC LIMIT 1")
        select.bind(device.rawValue)
        return try select.first(UpdateBinding.init)
    }

    /// Returns the binding of a device, its present user and a profile, and begins it if needed. Nil if the device does not exist, its app
    /// was deleted, or it has too many bindings.
    func begin(of device: DeviceSerial, profile: String, at now: Timestamp) throws -> UpdateBinding? {
        if let present = try present(of: device, profile: profile) { return present }
        let select = """
            SELECT 1 FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL WHERE device.serial = ?
            """
        guard try Int64.first(db, select, [device.rawValue]) != nil else { return nil }
        // A device has one at a time: what is for another is not given to this.
        try db.run(
            """
            UPDATE binding SET ended_at = ?, locations = NULL, located_at = NULL, held_to = 0, is_left_over = 1,
                revision = revision + 1, parameters_revision = NULL WHERE device = ? AND ended_at IS NULL
            """, [now.milliseconds, device.rawValue])
        if let ended = try ended(of: device, profile) {
            // What he had not finished of content, and expired while he was away, he fetches with everything.
            try db.run(
                """
                UPDATE completion SET state = \(CompletionMachine.State.expired.rawValue)
                WHERE binding = ? AND state = \(CompletionMachine.State.gone.rawValue) AND NOT has_left
                    AND EXISTS (SELECT 1 FROM audience_update WHERE serial = in_update AND status = 3 AND kind = 'content')
                """, [ended])
            let isMissed = try db.changesCount > 0 || CompletionTable(db).mayHaveLostContent(BindingSerial(ended))
            try db.run(
                """
                UPDATE binding SET ended_at = NULL, is_left_over = 0, held_to = 0, revision = revision + 1,
                    needs_resync = max(needs_resync, ?) WHERE serial = ?
                """, [isMissed ? 1 : 0, ended])
            // What the user had not finished is his again, unless he left the audience.
            try db.run(
                """
                UPDATE completion SET state = 0, due_at = ? WHERE binding = ? AND state = \(CompletionMachine.State.gone.rawValue)
                    AND NOT has_left AND EXISTS (SELECT 1 FROM audience_update WHERE serial = in_update AND status = 0)
                """, [now.milliseconds, ended])
            try CompletionTable(db).lineUp(BindingSerial(ended))
            return try present(of: device, profile: profile)
        }
        let count = try Int.first(db, "SELECT count(*) FROM binding WHERE device = ?", [device.rawValue]) ?? 0
        if count >= UpdateBinding.mostOfDevice, try !removeIdle(of: device) { return nil }
        try db.run(
            """
            INSERT INTO binding (device, app, user, profile, parameters, kinds, created_at, seen_to)
            SELECT serial, app, (SELECT user FROM device_profile WHERE device = device.serial), ?, ?, '', ?,
                \(Self.end("device.app"))
            FROM device WHERE serial = ?
            """, [profile, Data("{}".utf8), now.milliseconds, device.rawValue])
        return try present(of: device, profile: profile)
    }

    /// Removes the binding that was used least recently and has nothing unfinished. Returns false if there is none.
    private func removeIdle(of device: DeviceSerial) throws -> Bool {
        let (final, gone) = (CompletionMachine.State.done.rawValue, CompletionMachine.State.gone.rawValue)
        let idle = try Int64.first(
            db,
            """
            SELECT serial FROM binding WHERE device = ? AND ended_at NOT NULL
                AND NOT EXISTS (SELECT 1 FROM completion LEFT JOIN audience_update ON audience_update.serial = in_update
                    WHERE completion.binding = binding.serial
                        AND (state < \(final) OR state = \(gone) AND audience_update.status = 0))
            ORDER BY ended_at, serial LIMIT 1
            """, [device.rawValue])
        guard let idle else { return false }
        try db.run("DELETE FROM binding WHERE serial = ?", [idle])
        db.count(1, of: Self.removed)
        return true
    }

    private static let removed = ServerMetric.bindingsRemoved.counter()

    private func ended(of device: DeviceSerial, _ profile: String) throws -> Int64? {
        try Int64.first(
            db,
            """
            SELECT serial FROM binding
            WHERE device = ? AND coalesce(user, '') = coalesce((SELECT user FROM device_profile WHERE device = ?), '')
                AND profile = ? AND ended_at NOT NULL
            """, [device.rawValue, device.rawValue, profile])
    }

    /// The device's user changed: the bindings of others end, and what is unfinished of them is kept for their return.
    func userChanged(of device: DeviceSerial, to user: UserID?, at now: Timestamp) throws {
        let bindings = try Int64.fetchAll(
            db.cachedStatement(sql: "SELECT serial FROM binding WHERE device = ? AND ended_at IS NULL AND user IS NOT ?"),
            arguments: [device.rawValue, user?.text])
        let completions = CompletionTable(db)
        for binding in bindings {
            try db.run(
                """
                UPDATE binding SET ended_at = ?, locations = NULL, located_at = NULL, held_to = 0, revision = revision + 1,
                    parameters_revision = NULL WHERE serial = ?
                """, [now.milliseconds, binding])
            for completion in try completions.unfinished(of: BindingSerial(binding)) {
                _ = try completions.end(completion.key, as: .gone, at: now)
            }
        }
    }

    /// Writes parameters and kinds, if the binding is of the revision that is given, and did not end.
    ///
    /// - Parameter hasOtherKinds: Than before.
    /// - Returns: The binding as it is now, with what must be taken out of the inbox in the same transaction.
    func change(_ binding: UpdateBinding, hasOtherKinds: Bool, at now: Timestamp) throws -> BindingChange? {
        var update = try BoundStatement(
            db,
            """
            UPDATE binding SET revision = revision + 1, parameters_revision = ?, parameters = ?, locations = ?, located_at = ?, kinds = ?,
                held_to = 0 WHERE serial = ? AND revision = ? AND ended_at IS NULL
            """)
        update.bind(binding.parametersRevision)
        update.bind(binding.values.withoutLocations.json.bytes)
        update.bind(binding.values.hasLocation ? binding.values.locations.json.bytes : nil)
        update.bind(binding.locatedAt?.milliseconds)
        update.bind(binding.kinds.sorted().joined(separator: " "))
        update.bind(binding.serial.rawValue)
        update.bind(binding.revision)
        try update.run()
        guard db.changesCount == 1 else { return nil }
        let unknown = hasOtherKinds ? try followKinds(of: binding, at: now) : []
        var changed = binding
        changed.revision += 1
        changed.heldTo = .nowhere
        return BindingChange(binding: changed, takenOut: unknown)
    }

    /// What the device did not know before it is given now, and what it knows no more is not. Answers what of that is in the inbox.
    private func followKinds(of binding: UpdateBinding, at now: Timestamp) throws -> [MessageID] {
        let table = CompletionTable(db)
        let unknown = try table.unsupported(
            try table.unfinished(of: binding.serial, outside: binding.kinds), at: now)
        try db.run(
            """
            UPDATE completion SET state = 0, due_at = ?
            WHERE binding = ? AND state = \(CompletionMachine.State.unsupported.rawValue)
                AND EXISTS (SELECT 1 FROM audience_update
                    WHERE serial = in_update AND status = 0 AND instr(?, ' ' || kind || ' ') > 0)
            """,
            [now.milliseconds, binding.serial.rawValue, " " + binding.kinds.sorted().joined(separator: " ") + " "])
        try table.lineUp(binding.serial)
        return unknown
    }

    /// Answers whether the binding is still of the revision.
    ///
    /// - Parameter isFull: What comes after the place had no room: of content among it that expires nothing is known.
    func held(_ binding: BindingSerial, revision: Int64, to place: HeldTo, isFull: Bool) throws -> Bool {
        var update = try BoundStatement(
            db,
            """
            UPDATE binding SET held_to = max(iif(held_by = ?1, held_to, 0), ?2), held_by = ?1,
                seen_to = CASE WHEN ?5 THEN min(seen_to, ?2)
                    WHEN EXISTS (SELECT 1 FROM audience_update WHERE audience_update.app = binding.app AND status = 3
                        AND kind = 'content' AND audience_update.serial > seen_to) THEN seen_to
                    ELSE max(seen_to, ?2) END
            WHERE serial = ?3 AND revision = ?4 AND ended_at IS NULL
            """)
        update.bind(place.rules)
        update.bind(place.place.rawValue)
        update.bind(binding.rawValue)
        update.bind(revision)
        update.bind(isFull ? 1 : 0)
        try update.run()
        return db.changesCount == 1
    }

    // MARK: What it missed

    /// The end of an app's log.
    private static func end(_ app: String) -> String {
        "coalesce((SELECT max(serial) FROM audience_update WHERE audience_update.app = \(app)), 0)"
    }

    func saw(_ binding: BindingSerial, to place: UpdateSerial) throws {
        try db.run(
            "UPDATE binding SET seen_to = max(seen_to, ?) WHERE serial = ?", [place.rawValue, binding.rawValue])
    }

    /// It is told to fetch everything that is there now.
    func madeUp(_ binding: BindingSerial) throws {
        try db.run(
            "UPDATE binding SET needs_resync = 0, seen_to = \(Self.end("binding.app")) WHERE serial = ?",
            [binding.rawValue])
    }

    func received(_ binding: BindingSerial, to place: ReceivedTo) throws {
        try db.run(
            """
            UPDATE binding SET received_to = max(received_to, ?), updates_to = max(updates_to, ?) WHERE serial = ?
            """, [place.all, place.updates, binding.rawValue])
    }

    /// It begins anew, from no position.
    func begins(_ binding: BindingSerial, needsResync: Bool) throws {
        try db.run(
            """
            UPDATE binding SET received_to = 0, updates_to = 0, needs_resync = max(needs_resync, ?) WHERE serial = ?
            """, [needsResync ? 1 : 0, binding.rawValue])
    }

    /// Where devices were before a moment is forgotten: what they belong to is looked at anew.
    func forgetLocations(before moment: Timestamp, limit: Int) throws {
        try db.run(
            """
            UPDATE binding SET locations = NULL, located_at = NULL, held_to = 0, revision = revision + 1 WHERE serial IN
                (SELECT serial FROM binding WHERE located_at NOT NULL AND located_at <= ? LIMIT ?)
            """, [moment.milliseconds, limit])
    }

    /// - Parameter withAddress: Only of devices that can be pushed to.
    func of(_ app: AppSerial, after: BindingSerial, limit: Int, withAddress: Bool = false) throws -> [AppBinding] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), device.id FROM binding JOIN device ON device.serial = binding.device
            WHERE binding.app = ? AND binding.serial > ? AND binding.ended_at IS NULL \(withAddress ? Self.hasAddress : "")
            ORDER BY binding.serial LIMIT ?
            """)
        select.bind(app.rawValue)
        select.bind(after.rawValue)
        select.bind(limit)
        var found: [AppBinding] = []
        try select.forEachRow { columns in
            found.append(
                AppBinding(binding: UpdateBinding(columns), device: DeviceID(try columns.bytes16(Self.columnCount))))
            return true
        }
        return found
    }
}

extension BindingTable {
    fileprivate static let hasAddress = """
        AND EXISTS (SELECT 1 FROM device_profile
            WHERE device_profile.device = binding.device AND token NOT NULL AND reason IS NULL)
        """
}

extension UpdateBinding {
    init(_ columns: StatementColumns) { self.init(columns, from: 0) }

    /// - Parameter place: Of the first of ``BindingTable/columns``.
    init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            serial: BindingSerial(columns.integer(place)), device: DeviceSerial(columns.integer(place + 1)),
            user: columns.text(place + 2).flatMap(UserID.init), profile: columns.text(place + 3) ?? "",
            revision: columns.integer(place + 4), parametersRevision: columns.text(place + 5),
            values: ParameterValues(stored: columns.bytes(place + 6) ?? [], columns.bytes(place + 11) ?? []),
            locatedAt: columns.integerIfAny(place + 7).map(Timestamp.init(milliseconds:)),
            kinds: Set((columns.text(place + 8) ?? "").split(separator: " ").map(String.init)),
            heldTo: HeldTo(UpdateSerial(columns.integer(place + 9)), rules: columns.integer(place + 10)),
            seenTo: UpdateSerial(columns.integer(place + 12)), needsResync: columns.integer(place + 13) != 0,
            receivedTo: ReceivedTo(all: columns.integer(place + 14), updates: columns.integer(place + 15)))
    }
}
