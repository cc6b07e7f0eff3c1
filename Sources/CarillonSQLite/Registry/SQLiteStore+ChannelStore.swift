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
        let request = ChannelRequest(id, device: device, name: name, vapidKey: vapidKey, wake: wake)
        return try await group.run { db in
            let writer = RegistrationChangeWriter(db)
            let facts = try RegistrationReader(db).facts(of: request)
            switch RegistrationRules.open(request, limit: limit, at: now, knowing: facts) {
            case .refused(let result): return result
            case .found(let channel): return .alreadyOpen(channel)
            case .rewoken(let channel):
                try writer.writeWake(of: channel)
                return .alreadyOpen(channel)
            case .opened(var channel, let isOfUser):
                channel.serial = try writer.insert(channel, isOfUser: isOfUser)
                return .opened(channel)
            }
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
            return results == [.finished] ? channel.serial : nil
        }
    }

    private static func channel(_ id: ChannelID, device: DeviceSerial, in db: Database) throws -> PushChannel? {
        let select = try db.cachedStatement(sql: selectChannels + " WHERE channel.device = ? AND channel.id = ?")
        return try Row.first(select, [device.rawValue, id.value.data], PushChannel.init)
    }

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
    /// - Parameter row: A row of `selectChannels`.
    init(row: Row) throws {
        self.init(
            serial: ChannelSerial(row[0]), device: DeviceSerial(row[1]), app: AppSerial(row[2]),
            id: ChannelID(try row.bytes16(at: 3)), name: row[4], vapidKey: row.bytes(at: 5),
            wake: WakeMode(rawValue: row[7]) ?? .background, createdAt: row.timestamp(at: 6))
    }
}
