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
    ) async throws -> Device? {
        let key = new.key.map { Int64(bitPattern: $0.value) }
        return try await group.run { db -> Device? in
            guard let serial = try Int64.first(db, Self.selectOpenApp, [new.app.text, key, key]) else { return nil }
            if let registration = new.registration,
                var device = try Self.device(registeredAs: registration, app: serial, in: db)
            {
                device.credentialHash = credential(device.id)
                try db.run(
                    "UPDATE device SET credential_hash = ? WHERE serial = ?",
                    [Data(device.credentialHash.bytes), device.serial.rawValue])
                return device
            }
            let hash = credential(new.proposed)
            try db.run(
                """
                INSERT INTO device (id, app, credential_hash, created_at, is_anonymous, seen_at, access_key)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
                [
                    new.proposed.value.data, serial, Data(hash.bytes), now.milliseconds, new.isAnonymous,
                    now.milliseconds, key,
                ])
            let device = Device(
                serial: DeviceSerial(db.lastInsertedRowID), id: new.proposed, app: AppSerial(serial), appID: new.app,
                credentialHash: hash, createdAt: now, isAnonymous: new.isAnonymous, seenAt: now)
            if let registration = new.registration {
                try db.run(
                    "INSERT INTO registration (device, app, secret_hash) VALUES (?, ?, ?)",
                    [device.serial.rawValue, serial, Data(registration.bytes)])
            }
            return device
        }
    }

    /// The app, when the key opens it still that a device registers with, if it does with one.
    private static let selectOpenApp = """
        SELECT serial FROM app WHERE id = ?
            AND (? IS NULL OR EXISTS (SELECT 1 FROM access_key WHERE access_key.id = ? AND revoked_at IS NULL))
        """

    private static func device(
        registeredAs registration: SecretHash, app: Int64, in db: Database
    ) throws -> Device? {
        let select =
            selectDevices + """
                 JOIN registration ON registration.device = device.serial
                WHERE registration.app = ? AND registration.secret_hash = ?
                """
        return try Row.first(db.cachedStatement(sql: select), [app, Data(registration.bytes)], Device.init)
    }

    package func device(_ id: DeviceID) async throws -> Device? {
        try await read { db in try Self.device(.id(id), in: db) }
    }

    package func device(withCredential hash: SecretHash) async throws -> Device? {
        try await read { db in try Self.device(.credential(hash), in: db) }
    }

    static func device(_ name: DeviceName, in db: Database) throws -> Device? {
        let (column, value) =
            switch name {
            case .id(let id): ("id", id.value.data)
            case .credential(let hash): ("credential_hash", Data(hash.bytes))
            }
        let select = try db.cachedStatement(sql: selectDevices + " WHERE device.\(column) = ?")
        return try Row.first(select, [value], Device.init)
    }

    package func devices(app: AppID, after: DeviceID?, limit: Int) async throws -> [Device] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: Self.selectDevices + """
                     WHERE app.id = ? AND device.serial > coalesce((SELECT serial FROM device WHERE id = ?), 0)
                    ORDER BY device.serial LIMIT ?
                    """,
                arguments: [app.text, after?.value.data, limit]
            ).map(Device.init)
        }
    }

    package func markSeen(_ devices: [DeviceSerial], at now: Timestamp) async throws {
        try await group.run { db in
            let update = try db.cachedStatement(
                sql: "UPDATE device SET seen_at = ?, is_anonymous = TRUE WHERE serial = ?")
            for device in devices { try update.execute(arguments: [now.milliseconds, device.rawValue]) }
        }
    }

    package func idleDevices(
        seenBefore: Timestamp, orWithoutChannelBefore: Timestamp, limit: Int
    ) async throws -> [DeviceSerial] {
        try await read { db in
            try Int64.fetchAll(
                db,
                sql: """
                    SELECT serial FROM device WHERE is_anonymous AND (seen_at <= ? OR seen_at <= ? AND NOT EXISTS
                        (SELECT 1 FROM channel WHERE channel.device = device.serial))
                    ORDER BY seen_at LIMIT ?
                    """,
                arguments: [seenBefore.milliseconds, orWithoutChannelBefore.milliseconds, limit]
            ).map(DeviceSerial.init)
        }
    }

    package func devices(registeredWith key: KeyID, limit: Int) async throws -> [Device] {
        try await read { db in
            try Row.fetchAll(
                db, sql: Self.selectDevices + " WHERE device.access_key = ? LIMIT ?",
                arguments: [Int64(bitPattern: key.value), limit]
            ).map(Device.init)
        }
    }

    package func deleteDevice(_ serial: DeviceSerial, at now: Timestamp) async throws -> RemovedDevices? {
        try await changeInboxes { [settings] db, transaction in
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
}

extension Device {
    /// - Parameter row: As `selectDevices` gives it.
    fileprivate init(row: Row) throws {
        guard let app = AppID(row[3] as String), let hash = row.bytes(at: 4) else {
            throw StoreFault(.unavailable, "a device's row cannot be read")
        }
        self.init(
            serial: DeviceSerial(row[0]), id: DeviceID(try row.bytes16(at: 1)), app: AppSerial(row[2]),
            appID: app, credentialHash: SecretHash(stored: hash), createdAt: row.timestamp(at: 5),
            isAnonymous: row[6], seenAt: row.timestamp(at: 7))
    }
}
