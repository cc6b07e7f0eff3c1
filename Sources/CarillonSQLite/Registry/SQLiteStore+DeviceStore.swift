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
        _ new: NewDevice, at now: Timestamp, credential: @escaping @Sendable (DeviceID) -> SecretHash
    ) async throws -> InsertedDevice {
        let key = new.key.map { Int64(bitPattern: $0.value) }
        return try await changeInboxes { [memory, settings] db, inboxes in
            let select = try db.cachedStatement(sql: Self.selectOpenApp)
            let read = { (row: Row) in (app: row[0] as Int64, devices: row[1] as Int) }
            guard let (app, devices) = try Row.first(select, [new.app.text, key, key], read) else { return .notAllowed }
            let known = try new.registration.flatMap { try Self.device(registeredAs: $0, app: app, in: db) }
            guard known != nil || devices < settings.devicesPerApp else {
                return .refused(
                    Refusal(.devicesTooMany, "The app has \(settings.devicesPerApp) devices, as many as it may."))
            }
            if let share = new.share, known == nil, try !Self.hasRoom(share, in: db) { return .addressFull }
            let table = RegistrationTable(db, memory: memory)
            var decision: RegistrationRules.Decision?
            if new.profile != nil || new.user != nil {
                let earlier = try known.flatMap { try table.registration(of: $0.serial) }
                let current =
                    earlier ?? DeviceRegistration(device: known?.serial ?? DeviceSerial(0), at: known?.createdAt ?? now)
                let decided = try table.decide(
                    new.profile ?? current.profile, confirms: new.profile != nil, of: new.user, over: current,
                    app: AppSerial(app), at: now)
                switch decided {
                case .success(let decided): decision = decided
                case .failure(let refusal): return .refused(refusal)
                }
            }
            let device =
                try known.map { try Self.renew($0, credential, in: db) } ?? Self.insert(new, app, now, credential, in: db)
            if var decision {
                decision.registration.device = device.serial
                let ended = try table.store(decision, app: device.app, isNew: known == nil, inboxes, at: now)
                if known != nil, decision.changesUser { return .handedOver(device, ended: ended) }
            }
            return .stored(device)
        }
    }

    /// Whether the address of a new anonymous device has room for one more.
    private static func hasRoom(_ share: NewDevice.AddressShare, in db: Database) throws -> Bool {
        let count = try Int64.first(
            db, "SELECT COUNT(*) FROM (SELECT 1 FROM anonymous_address WHERE address = ? LIMIT ?)",
            [address(share), share.limit])
        return count ?? 0 < share.limit
    }

    private static func address(_ share: NewDevice.AddressShare) -> Data { Data(share.address.owner.bytes.prefix(8)) }

    private static func renew(
        _ device: Device, _ credential: (DeviceID) -> SecretHash, in db: Database
    ) throws -> Device {
        var device = device
        device.credentialHash = credential(device.id)
        try db.run(
            "UPDATE device SET credential_hash = ? WHERE serial = ?",
            [Data(device.credentialHash.bytes), device.serial.rawValue])
        return device
    }

    private static func insert(
        _ new: NewDevice, _ app: Int64, _ now: Timestamp, _ credential: (DeviceID) -> SecretHash, in db: Database
    ) throws -> Device {
        let hash = credential(new.proposed)
        try db.run(
            """
            INSERT INTO device (id, app, credential_hash, created_at, is_anonymous, seen_at, access_key, seen_served)
            VALUES (?, ?, ?, ?, ?, ?, ?, (SELECT seconds FROM served))
            """,
            [
                new.proposed.value.data, app, Data(hash.bytes), now.milliseconds, new.isAnonymous,
                now.milliseconds, new.key.map { Int64(bitPattern: $0.value) },
            ])
        let device = Device(
            serial: DeviceSerial(db.lastInsertedRowID), id: new.proposed, app: AppSerial(app), appID: new.app,
            credentialHash: hash, createdAt: now, isAnonymous: new.isAnonymous, seenAt: now)
        if let share = new.share {
            try db.run(
                "INSERT INTO anonymous_address (device, address) VALUES (?, ?)", [device.serial.rawValue, address(share)])
        }
        if let registration = new.registration {
            try db.run(
                "INSERT INTO registration (device, app, secret_hash) VALUES (?, ?, ?)",
                [device.serial.rawValue, app, Data(registration.bytes)])
        }
        return device
    }

    package func registration(of device: DeviceSerial) async throws -> DeviceRegistration? {
        try await read { [memory] db in try Self.registration(of: device, in: db, memory)?.registration }
    }

    package func changeRegistration(
        of device: DeviceSerial, at now: Timestamp, _ change: @escaping RegistrationChange
    ) async throws -> Result<RegistrationRules.Decision, Refusal>? {
        // Most devices say what they said before, which takes no writer.
        let read = try await read { [memory] db in
            try Self.decide(change, of: device, in: RegistrationTable(db, memory: memory), db, memory, at: now)
        }
        guard let read else { return nil }
        if case .success(let decision) = read.decided, !decision.isChanged, decision.displaced == nil {
            if read.confirms { memory.pushes.noteConfirmed(device, at: now) }
            return read.decided
        }
        return try await changeInboxes { [memory] db, inboxes in
            let table = RegistrationTable(db, memory: memory)
            guard let (decided, app, _) = try Self.decide(change, of: device, in: table, db, memory, at: now) else {
                return nil
            }
            guard case .success(var decision) = decided else { return decided }
            decision.ended = try table.store(decision, app: app, inboxes, at: now)
            return .success(decision)
        }
    }

    private static func decide(
        _ change: RegistrationChange, of device: DeviceSerial, in table: RegistrationTable, _ db: Database,
        _ memory: InboxMemory, at now: Timestamp
    ) throws -> (decided: Result<RegistrationRules.Decision, Refusal>, app: AppSerial, confirms: Bool)? {
        guard let (current, app) = try registration(of: device, in: db, memory) else { return nil }
        let wish: RegistrationWish
        do throws(Refusal) {
            wish = try change(current)
        } catch {
            return (.failure(error), app, false)
        }
        switch wish {
        case .nothing: return (.success(.unchanged(current)), app, false)
        case .becomes(let registration): return (.success(.status(of: registration)), app, false)
        case .says(let profile, let confirms, let user):
            let decided = try table.decide(profile, confirms: confirms, of: user, over: current, app: app, at: now)
            return (decided, app, confirms && profile.address != nil)
        }
    }

    /// Of a device that said nothing, what it has from the beginning.
    private static func registration(
        of device: DeviceSerial, in db: Database, _ memory: InboxMemory
    ) throws -> (registration: DeviceRegistration, app: AppSerial)? {
        let select = try db.cachedStatement(
            sql: """
                SELECT device.app, device.created_at FROM device
                JOIN app ON app.serial = device.app AND app.ended_at IS NULL WHERE device.serial = ?
                """)
        let read = { (row: Row) in (AppSerial(row[0]), row.timestamp(at: 1)) }
        guard let (app, createdAt) = try Row.first(select, [device.rawValue], read) else { return nil }
        let registration = try RegistrationTable(db, memory: memory).registration(of: device)
        return (registration ?? DeviceRegistration(device: device, at: createdAt), app)
    }

    /// The app, when the key opens it still that a device registers with, if it does with one.
    private static let selectOpenApp = """
        SELECT serial, devices FROM app WHERE id = ?
            AND (? IS NULL OR EXISTS (SELECT 1 FROM access_key WHERE access_key.id = ? AND revoked_at IS NULL))
        """

    private static func device(
        registeredAs registration: SecretHash, app: Int64, in db: Database
    ) throws -> Device? {
        var select = try BoundStatement(db, selectByRegistration)
        select.bind(app)
        select.bind(registration.bytes)
        return try select.first(Device.init)
    }

    package func untoldStatuses(limit: Int) async throws -> [UntoldStatus] {
        try await read { db in try StatusNewsTable(db).untold(limit: limit) }
    }

    package func device(_ id: DeviceID) async throws -> Device? {
        try await read { db in try Self.device(.id(id), in: db) }
    }

    package func device(_ serial: DeviceSerial) async throws -> Device? {
        try await read { db in try Self.device(serial, in: db) }
    }

    static func device(_ serial: DeviceSerial, in db: Database) throws -> Device? {
        var select = try BoundStatement(db, selectBySerial)
        select.bind(serial.rawValue)
        return try select.first(Device.init)
    }

    package func device(withCredential hash: SecretHash) async throws -> Device? {
        try await read { db in try Self.device(.credential(hash), in: db) }
    }

    static func device(_ name: DeviceName, in db: Database) throws -> Device? {
        switch name {
        case .id(let id):
            var select = try BoundStatement(db, selectByID)
            select.bind(id.value)
            return try select.first(Device.init)
        case .credential(let hash):
            var select = try BoundStatement(db, selectByCredential)
            select.bind(hash.bytes)
            return try select.first(Device.init)
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

    package func devices(registeredWith key: KeyID, limit: Int) async throws -> [Device] {
        try await read { db in
            var select = try BoundStatement(db, Self.selectByKey)
            select.bind(Int64(bitPattern: key.value))
            select.bind(limit)
            var devices: [Device] = []
            try select.forEachRow { columns in
                devices.append(try Device(columns))
                return true
            }
            return devices
        }
    }

    package func deleteDevice(
        _ serial: DeviceSerial, unlessSeenAfter cutoff: RetentionCutoff?, at now: Timestamp
    ) async throws -> RemovedDevices? {
        try await changeInboxes { [settings] db, transaction in
            if let cutoff {
                let isIdle = try Int64.first(
                    db, "SELECT 1 FROM device WHERE serial = ? AND seen_at <= ? AND seen_served <= ?",
                    [serial.rawValue, cutoff.wall.milliseconds, cutoff.served])
                if isIdle == nil { return nil }
            }
            let deletions = Deletions(db, transaction, settings: settings)
            let removed = try deletions.remove(serial, because: .deviceDeleted, at: now, limit: Self.rowsAtOnce)
            return removed.map { RemovedDevices(devices: [serial], channels: $0.channels) }
        }
    }

    private static let rowsAtOnce = 500

    private static let selectDevices = """
        SELECT device.serial, device.id, device.app, app.id, device.credential_hash, device.created_at, device.is_anonymous,
            device.seen_at FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL
        """
    private static let selectBySerial = selectDevices + " WHERE device.serial = ?"
    private static let selectByID = selectDevices + " WHERE device.id = ?"
    private static let selectByCredential = selectDevices + " WHERE device.credential_hash = ?"
    private static let selectByKey = selectDevices + " WHERE device.access_key = ? LIMIT ?"
    private static let selectByRegistration =
        selectDevices + """
             JOIN registration ON registration.device = device.serial
            WHERE registration.app = ? AND registration.secret_hash = ?
            """
}

extension Device {
    /// - Parameter columns: As `selectDevices` gives them.
    fileprivate init(_ columns: StatementColumns) throws {
        guard let app = columns.text(3).flatMap(AppID.init), let hash = columns.bytes(4) else {
            throw StoreFault(.unavailable, "a device's row cannot be read")
        }
        self.init(
            serial: DeviceSerial(columns.integer(0)), id: DeviceID(try columns.bytes16(1)),
            app: AppSerial(columns.integer(2)), appID: app, credentialHash: SecretHash(stored: hash),
            createdAt: columns.timestamp(5), isAnonymous: columns.integer(6) != 0, seenAt: columns.timestamp(7))
    }
}
