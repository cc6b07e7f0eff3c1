package import CarillonCore
package import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: DeviceStore {
    package func insertDevice(
        _ new: NewDevice, at now: Timestamp, credential: NewCredential
    ) async throws -> InsertedDevice {
        try await changeInboxes { [memory, settings] db, inboxes in
            try RegistrationTable(db, memory: memory).insert(
                new, limit: settings.devicesPerApp, inboxes, at: now, credential: credential)
        }
    }

    package func registration(of device: DeviceSerial) async throws -> DeviceRegistration? {
        try await read { db in try RegistrationReader(db).facts(of: device)?.current }
    }

    package func writeRegistration(
        _ request: RegistrationRequest, decidedOn basis: DeviceRegistration, at now: Timestamp
    ) async throws -> RegistrationWrite {
        try gate.check()
        // Most devices say what they said before, which takes no writer.
        if let unchanged = RegistrationRules.unchanged(by: request, over: basis, at: now) {
            if unchanged.confirms { memory.confirmations.note(basis, at: now) }
            return .decided(unchanged.decision)
        }
        return try await changeInboxes { [memory] db, inboxes in
            try RegistrationTable(db, memory: memory).change(request, decidedOn: basis, inboxes, at: now)
        }
    }

    package func pendingStatuses(in shards: ShardSet, limit: Int) async throws -> [PendingStatus] {
        try await read { db in try PendingStatusTable(db).pending(in: shards, limit: limit) }
    }

    package func device(_ id: DeviceID) async throws -> Device? {
        try await read { db in try Self.device(id, in: db) }
    }

    package func device(_ serial: DeviceSerial) async throws -> Device? {
        try await read { db in try Self.device(serial, in: db) }
    }

    static func device(_ serial: DeviceSerial, in db: Database) throws -> Device? {
        var select = try BoundStatement(db, selectBySerial)
        select.bind(serial.rawValue)
        return try select.first { try Device($0) }
    }

    package func device(withCredential hash: SecretHash) async throws -> Device? {
        try await read { db in try Self.device(.credential(hash), in: db) }
    }

    package func device(registeredBy secret: SecretHash, in app: AppID) async throws -> Device? {
        try await read { db in
            var select = try BoundStatement(db, Self.selectByRegistration)
            select.bind(app.text)
            select.bind(secret.bytes)
            return try select.first { try Device($0) }
        }
    }

    private static func device(_ id: DeviceID, in db: Database) throws -> Device? {
        var select = try BoundStatement(db, selectByID)
        select.bind(id.value)
        return try select.first { try Device($0) }
    }

    static func device(_ name: DeviceName, in db: Database) throws -> Device? {
        switch name {
        case .id(let id, let hash):
            var select = try BoundStatement(db, selectByIDAndCredential)
            select.bind(id.value)
            select.bind(hash.bytes)
            return try select.first { try Device($0) }
        case .credential(let hash):
            var select = try BoundStatement(db, selectByCredential)
            select.bind(hash.bytes)
            return try select.first { try Device($0) }
        }
    }

    package func devices(
        app: AppID, _ filter: DeviceFilter, after place: DeviceSerial?, limit: Int
    ) async throws -> DevicePart {
        try await scan { [memory] db in
            try DeviceSlice(db, memory: memory).read(app, filter, after: place?.rawValue ?? 0, limit: limit)
        }
    }

    package func markSeen(_ devices: [DeviceSerial], areAnonymous: Bool, at now: Timestamp) async throws {
        try await group.run { db in
            let update = try db.cachedStatement(
                sql: """
                    UPDATE device SET seen_at = ?, seen_served = (SELECT seconds FROM served),
                        is_anonymous = is_anonymous OR ? WHERE serial = ?
                    """)
            for device in devices { try update.execute(arguments: [now.milliseconds, areAnonymous, device.rawValue]) }
        }
    }

    package func devicesCame(_ devices: [DeviceSerial], at now: Timestamp) async throws {
        let slow = try await read { db in
            let select = try db.cachedStatement(sql: "SELECT unanswered FROM wake WHERE device = ?")
            return try devices.filter { device in
                let unanswered = try Int.fetchOne(select, arguments: [device.rawValue])
                return unanswered.map { WakePace(unanswered: $0).isSlow } ?? false
            }
        }
        guard !slow.isEmpty else { return }
        try await group.run { [memory] db in
            let table = WakeTable(db, memory: memory)
            for device in slow { try table.came(device, at: now) }
        }
    }

    package func resetBadge(of device: DeviceSerial) async throws -> Bool {
        try await group.run { db in
            try db.run("UPDATE device_profile SET badge = 0 WHERE device = ?", [device.rawValue])
            return try Int.first(db, "SELECT 1 FROM device WHERE serial = ?", [device.rawValue]) != nil
        }
    }

    package func renewCredential(of device: DeviceSerial, to hash: SecretHash) async throws -> Bool {
        try await group.run { db in
            try db.run(
                "UPDATE device SET credential_hash = ? WHERE serial = ?", [Data(hash.bytes), device.rawValue])
            guard db.changesCount == 1 else { return false }
            try db.run("DELETE FROM registration WHERE device = ?", [device.rawValue])
            return true
        }
    }

    package func devices(
        registeredWith key: KeyID, of app: AppID, after place: DeviceSerial?, limit: Int
    ) async throws -> KeyDevices {
        try await scan { db in
            var select = try BoundStatement(db, Self.selectKeysOfDevices)
            select.bind(app.text)
            select.bind(place?.rawValue ?? 0)
            select.bind(limit)
            let wanted = Int64(bitPattern: key.value)
            var (found, compared, last) = ([DeviceSerial](), 0, DeviceSerial?.none)
            try select.forEachRow { columns in
                let device = DeviceSerial(columns.integer(0))
                if columns.integerIfAny(1) == wanted { found.append(device) }
                compared += 1
                last = device
                return true
            }
            return KeyDevices(found, end: compared < limit ? nil : last)
        }
    }

    package func deleteDevice(
        _ serial: DeviceSerial, unlessSeenAfter cutoff: RetentionCutoff?, at now: Timestamp
    ) async throws -> RemovedDevices? {
        try await changeInboxes { [settings] db, transaction in
            let removed = try Deletions(db, transaction, settings: settings).remove(
                serial, unlessSeenAfter: cutoff, because: .deviceDeleted, at: now, limit: Self.rowsAtOnce)
            return removed.map { RemovedDevices(devices: [serial], channels: $0.channels) }
        }
    }

    private static let rowsAtOnce = 500

    private static let selectDevices = "SELECT \(Device.columns) FROM \(Device.tables)"
    private static let selectBySerial = selectDevices + " WHERE device.serial = ?"
    private static let selectByID = selectDevices + " WHERE device.id = ?"
    private static let selectByIDAndCredential = selectByID + " AND device.credential_hash = ?"
    private static let selectByCredential = selectDevices + " WHERE device.credential_hash = ?"
    private static let selectByRegistration = """
        SELECT \(Device.columns) FROM app
        JOIN registration ON registration.app = app.serial AND registration.secret_hash = ?2
        JOIN device ON device.serial = registration.device
        WHERE app.id = ?1 AND app.ended_at IS NULL
        """
    /// The keys are compared outside the statement, so that its limit is the number of rows that it reads.
    private static let selectKeysOfDevices = """
        SELECT serial, access_key FROM device WHERE app = (SELECT serial FROM app WHERE id = ?) AND serial > ?
        ORDER BY serial LIMIT ?
        """
}

extension Device {
    static let columns = """
        device.serial, device.id, device.app, app.id, device.credential_hash, device.created_at, device.is_anonymous,
        device.seen_at
        """
    static let columnCount: Int32 = 8
    /// Devices, joined with apps that are not deleted.
    static let tables = "device JOIN app ON app.serial = device.app AND app.ended_at IS NULL"

    /// - Parameter place: The first of ``columns``.
    init(_ columns: StatementColumns, from place: Int32 = 0) throws {
        guard let app = columns.text(place + 3).flatMap(AppID.init), let hash = columns.bytes(place + 4) else {
            throw StoreFault(.unavailable, "a device's row cannot be read")
        }
        self.init(
            serial: DeviceSerial(columns.integer(place)), id: DeviceID(try columns.bytes16(place + 1)),
            app: AppSerial(columns.integer(place + 2)), appID: app, credentialHash: SecretHash(stored: hash),
            createdAt: columns.timestamp(place + 5), isAnonymous: columns.integer(place + 6) != 0,
            seenAt: columns.timestamp(place + 7))
    }
}
