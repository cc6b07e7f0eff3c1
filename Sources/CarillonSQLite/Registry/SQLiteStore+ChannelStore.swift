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
        _ id: ChannelID, device: DeviceSerial, name: String?, vapidKey: [UInt8]?, wake: WakeMode?, limit: Int,
        at now: Timestamp
    ) async throws -> OpenChannelResult {
        try await group.run { db in
            if var open = try Self.channel(id, device: device, in: db) {
                if let wake, wake != open.wake, open.vapidKey == vapidKey {
                    open.wake = wake
                    try db.run("UPDATE channel SET wake = ? WHERE serial = ?", [wake.rawValue, open.serial.rawValue])
                }
                return .alreadyOpen(open)
            }
            let former = "SELECT 1 FROM channel WHERE device = ? AND id = ?"
            guard try Int.first(db, former, [device.rawValue, id.value.data]) == nil else { return .ofFormerUser }
            let owner = try db.cachedStatement(sql: Self.selectOwner)
            let read = { (row: Row) in (app: row[0] as Int64, channels: row[1] as Int, hasUser: row[2] as Bool) }
            guard let (app, channels, hasUser) = try Row.first(owner, [device.rawValue], read) else { return .deviceGone }
            guard channels < limit else { return .tooMany }
            try db.run(
                """
                INSERT INTO channel (device, id, name, vapid_key, created_at, wake, of_user) VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
                [
                    device.rawValue, id.value.data, name, vapidKey.map { Data($0) }, now.milliseconds,
                    (wake ?? .background).rawValue, hasUser ? 1 : 0,
                ])
            return .opened(
                PushChannel(
                    serial: ChannelSerial(db.lastInsertedRowID), device: device, app: AppSerial(app), id: id,
                    name: name, vapidKey: vapidKey, wake: wake ?? .background, createdAt: now))
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
            let select = try db.cachedStatement(
                sql: Self.selectChannels + " WHERE channel.device = ? ORDER BY channel.serial")
            return try Row.fetchAll(select, arguments: [device.rawValue]).map(PushChannel.init)
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

    private static func channel(_ id: ChannelID, device: DeviceSerial, in db: Database) throws -> PushChannel? {
        let select = try db.cachedStatement(sql: selectChannels + " WHERE channel.device = ? AND channel.id = ?")
        return try Row.first(select, [device.rawValue, id.value.data], PushChannel.init)
    }

    /// A device's app, how many channels it has, and whether it is somebody's.
    private static let selectOwner = """
        SELECT device.app, (SELECT count(*) FROM channel WHERE channel.device = device.serial),
            EXISTS (SELECT 1 FROM device_profile WHERE device_profile.device = device.serial AND user IS NOT NULL)
            FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL WHERE device.serial = ?
        """

    private static let selectChannels = selectAllChannels + " AND channel.of_user < 2"

    static let selectAllChannels =
        """
        SELECT channel.serial, channel.device, device.app, channel.id, channel.name, channel.vapid_key, channel.created_at,
            channel.wake
            FROM channel JOIN device ON device.serial = channel.device
            JOIN app ON app.serial = device.app AND app.ended_at IS NULL
        """
}

extension PushChannel {
    /// - Parameter row: As `selectChannels` gives it.
    init(row: Row) throws {
        self.init(
            serial: ChannelSerial(row[0]), device: DeviceSerial(row[1]), app: AppSerial(row[2]),
            id: ChannelID(try row.bytes16(at: 3)), name: row[4], vapidKey: row.bytes(at: 5),
            wake: WakeMode(rawValue: row[7]) ?? .background, createdAt: row.timestamp(at: 6))
    }
}
