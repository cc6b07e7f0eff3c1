package import CarillonCore
import GRDB

extension SQLiteStore: FormerChannelStore {
    package func channelsOfFormerUsers(
        of device: DeviceSerial?, in shards: ShardSet, limit: Int
    ) async throws -> [PushChannel] {
        try await read { db in
            let ofDevice = device == nil ? "" : " AND channel.device = :device"
            var arguments: StatementArguments = ["limit": limit]
            if let device { arguments += ["device": device.rawValue] }
            return try Row.fetchAll(
                db,
                sql: """
                    \(Self.selectAllChannels) WHERE channel.of_user = 2\(ofDevice) \(shards.condition(on: "channel.device"))
                    ORDER BY channel.serial LIMIT :limit
                    """,
                arguments: shards.arguments(with: arguments)
            ).map(PushChannel.init)
        }
    }
}
