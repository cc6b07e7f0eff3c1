import CarillonCore
import CarillonWire
import GRDB

/// The bindings: devices with their users and profiles, inside a transaction.
struct BindingTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    static let columns = """
        binding.serial, binding.device, binding.user, binding.profile, binding.revision, parameters_revision, binding.parameters,
        located_at, kinds, held_to, held_by, locations, seen_to, needs_resync, received_to, updates_to
        """
    static let columnCount: Int32 = 16

    /// Returns SQL for the present user of a device; empty if it has none.
    private static func presentUser(_ device: String) -> String {
        "coalesce((SELECT profile.user FROM device_profile AS profile WHERE profile.device = \(device)), '')"
    }

    /// Returns the binding of a device with its present user.
    func present(of device: DeviceSerial, profile: String) throws -> UpdateBinding? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM binding
            WHERE device = ? AND coalesce(binding.user, '') = \(Self.presentUser("?"))
                AND profile = ? AND ended_at IS NULL
            """)
        select.bind(device.rawValue)
        select.bind(device.rawValue)
        select.bind(profile)
        return try select.first(UpdateBinding.init)
    }

    /// The condition that selects the last binding of a device of the statement, unless the binding ended or belongs to
    /// another user.
    static let isPresent = """
        binding.device = device.serial AND coalesce(binding.user, '') = \(presentUser("device.serial"))
        AND binding.ended_at IS NULL
        """

    /// Returns the binding with which the device connected last, unless it ended.
    func present(of device: DeviceSerial) throws -> UpdateBinding? {
        var select = try BoundStatement(
            db, "SELECT \(Self.columns) FROM binding WHERE device = ? AND ended_at IS NULL ORDER BY serial DESC LIMIT 1")
        select.bind(device.rawValue)
        return try select.first(UpdateBinding.init)
    }

    func binding(_ serial: BindingSerial) throws -> UpdateBinding? {
        var select = try BoundStatement(db, "SELECT \(Self.columns) FROM binding WHERE serial = ?")
        select.bind(serial.rawValue)
        return try select.first(UpdateBinding.init)
    }

    // MARK: Missed updates

    /// Returns SQL for the end of an app's log.
    static func end(_ app: String) -> String {
        "coalesce((SELECT max(serial) FROM audience_update WHERE audience_update.app = \(app)), 0)"
    }

    /// Returns SQL for the later of a position in the row and a position that is bound twice, so that positions never decrease.
    private static func later(_ column: String) -> String {
        "CASE WHEN \(column) < ? THEN ? ELSE \(column) END"
    }

    func saw(_ binding: BindingSerial, to place: UpdateSerial) throws {
        try db.run(
            "UPDATE binding SET seen_to = \(Self.later("seen_to")) WHERE serial = ?",
            [place.rawValue, place.rawValue, binding.rawValue])
    }

    /// Notes that the device must be notified to fetch everything.
    func missed(_ binding: BindingSerial) throws {
        try db.run("UPDATE binding SET needs_resync = TRUE WHERE serial = ?", [binding.rawValue])
    }

    /// Notes that the device is notified to fetch all present content.
    func madeUp(_ binding: BindingSerial) throws {
        try db.run(
            "UPDATE binding SET needs_resync = FALSE, seen_to = \(Self.end("binding.app")) WHERE serial = ?",
            [binding.rawValue])
    }

    func received(_ binding: BindingSerial, to place: ReceivedTo) throws {
        try db.run(
            """
            UPDATE binding SET received_to = \(Self.later("received_to")), updates_to = \(Self.later("updates_to"))
            WHERE serial = ?
            """, [place.all, place.all, place.updates, place.updates, binding.rawValue])
    }

    /// The device begins again without a position.
    func begins(_ binding: BindingSerial, needsResync: Bool) throws {
        let noted: Int? = needsResync ? 1 : nil
        try db.run(
            """
            UPDATE binding SET received_to = 0, updates_to = 0, needs_resync = coalesce(?, needs_resync) WHERE serial = ?
            """, [noted, binding.rawValue])
    }

    /// Removes locations from before a certain time. The audiences of these devices are evaluated again.
    func forgetLocations(in shards: ShardSet, before moment: Timestamp, limit: Int) throws {
        try db.run(
            """
            UPDATE binding SET locations = NULL, located_at = NULL, held_to = 0, revision = revision + 1 WHERE serial IN
                (SELECT serial FROM binding WHERE located_at IS NOT NULL AND located_at <= ?
                \(shards.condition(on: "device")) LIMIT ?)
            """, shards.arguments(with: [moment.milliseconds, limit]))
    }

    /// - Parameter withAddress: Whether only devices to which pushes can be sent are returned.
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
        return try select.all { columns in
            try AppBinding(binding: UpdateBinding(columns), device: DeviceID(columns.bytes16(Self.columnCount)))
        }
    }
}

extension BindingTable {
    fileprivate static let hasAddress = """
        AND EXISTS (SELECT 1 FROM device_profile
            WHERE device_profile.device = binding.device AND token IS NOT NULL AND reason IS NULL)
        """
}

extension UpdateBinding {
    init(_ columns: StatementColumns) { self.init(columns, from: 0) }

    /// - Parameter place: The index of the first of ``BindingTable/columns``.
    init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            serial: BindingSerial(columns.integer(place)), device: DeviceSerial(columns.integer(place + 1)),
            user: columns.text(place + 2).flatMap(UserID.init), profile: columns.text(place + 3) ?? "",
            revision: columns.integer(place + 4), parametersRevision: columns.text(place + 5),
            values: ParameterValues(stored: columns.bytes(place + 6) ?? [], columns.bytes(place + 11) ?? []),
            locatedAt: columns.integerIfAny(place + 7).map(Timestamp.init(milliseconds:)),
            kinds: Set((columns.text(place + 8) ?? "").split(separator: " ").map(String.init)),
            cursor: AudienceCursor(UpdateSerial(columns.integer(place + 9)), rules: columns.integer(place + 10)),
            seenTo: UpdateSerial(columns.integer(place + 12)), needsResync: columns.integer(place + 13) != 0,
            receivedTo: ReceivedTo(all: columns.integer(place + 14), updates: columns.integer(place + 15)))
    }
}
