package import CarillonCore
package import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: ChannelStore {
    package func openChannel(
        _ id: ChannelID, device: DeviceSerial, name: String?, vapidKey: [UInt8]?, limit: Int, at now: Timestamp
    ) async throws -> OpenChannelResult {
        try await group.run { db in
            if let open = try Self.channel(id, device: device, in: db) { return .alreadyOpen(open) }
            let owner = try db.cachedStatement(sql: Self.selectOwner)
            let read = { (row: Row) in (app: row[0] as Int64, channels: row[1] as Int) }
            guard let (app, channels) = try Row.first(owner, [device.rawValue], read) else { return .deviceGone }
            guard channels < limit else { return .tooMany }
            try db.run(
                "INSERT INTO channel (device, id, name, vapid_key, created_at) VALUES (?, ?, ?, ?, ?)",
                [device.rawValue, id.value.data, name, vapidKey.map { Data($0) }, now.milliseconds])
            return .opened(
                PushChannel(
                    serial: ChannelSerial(db.lastInsertedRowID), device: device, app: AppSerial(app), id: id,
                    name: name, vapidKey: vapidKey, createdAt: now))
        }
    }

    package func channel(_ serial: ChannelSerial) async throws -> PushChannel? {
        try await read { db in
            let select = try db.cachedStatement(sql: Self.selectChannels + " WHERE channel.serial = ?")
            return try Row.first(select, [serial.rawValue], PushChannel.init)
        }
    }

    package func channel(_ id: ChannelID, device: DeviceSerial) async throws -> PushChannel? {
        try await read { db in try Self.channel(id, device: device, in: db) }
    }

    package func channels(device: DeviceSerial) async throws -> [PushChannel] {
        try await read { db in
            try Row.fetchAll(
                db, sql: Self.selectChannels + " WHERE channel.device = ? ORDER BY channel.serial",
                arguments: [device.rawValue]
            ).map(PushChannel.init)
        }
    }

    package func closeChannel(
        _ id: ChannelID, device: DeviceSerial, at now: Timestamp
    ) async throws -> ChannelSerial? {
        try await changeInboxes { db, transaction in
            guard let channel = try Self.channel(id, device: device, in: db) else { return nil }
            let end = InboxOperation.end(
                DeviceOrigin(device, channel.origin.key), because: .unregistered, at: now)
            let results = try transaction.perform([end])
            return results == [.settled] ? channel.serial : nil
        }
    }

    package func tokenKeys(makeKey: @Sendable () -> [UInt8]) async throws -> [TokenKey] {
        let fresh = makeKey()
        return try await group.run { db in
            try db.execute(
                sql: """
                    INSERT INTO token_key (id, bytes, created_at)
                    SELECT 1, ?, 0 WHERE NOT EXISTS (SELECT 1 FROM token_key)
                    """,
                arguments: [Data(fresh)])
            return try Row.fetchAll(db, sql: "SELECT * FROM token_key ORDER BY created_at DESC, id DESC").map { row in
                TokenKey(id: row["id"], bytes: row.bytes("bytes") ?? [])
            }
        }
    }

    private static func channel(_ id: ChannelID, device: DeviceSerial, in db: Database) throws -> PushChannel? {
        let select = try db.cachedStatement(sql: selectChannels + " WHERE channel.device = ? AND channel.id = ?")
        return try Row.first(select, [device.rawValue, id.value.data], PushChannel.init)
    }

    /// A device's app, and how many channels it has.
    private static let selectOwner = """
        SELECT device.app, (SELECT count(*) FROM channel WHERE channel.device = device.serial)
            FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL WHERE device.serial = ?
        """

    private static let selectChannels =
        """
        SELECT channel.serial, channel.device, device.app, channel.id, channel.name, channel.vapid_key, channel.created_at
            FROM channel JOIN device ON device.serial = channel.device
            JOIN app ON app.serial = device.app AND app.ended_at IS NULL
        """
}

extension PushChannel {
    /// - Parameter row: As `selectChannels` gives it.
    fileprivate init(row: Row) throws {
        self.init(
            serial: ChannelSerial(row[0]), device: DeviceSerial(row[1]), app: AppSerial(row[2]),
            id: ChannelID(try row.bytes16(at: 3)), name: row[4], vapidKey: row.bytes(at: 5), createdAt: row.timestamp(at: 6))
    }
}
