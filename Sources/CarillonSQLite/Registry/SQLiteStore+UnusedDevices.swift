package import CarillonCore
import CarillonWire
import GRDB

extension SQLiteStore {
    package func unusedDevices(
        _ reason: UnusedDevice.Reason, in shards: ShardSet, by cutoff: RetentionCutoff, limit: Int
    ) async throws -> [UnusedDevice] {
        try await read { db in
            let select = try db.cachedStatement(
                sql: """
                    SELECT device.serial, device.id, app.id, seen_at FROM \(reason.tables)
                    JOIN app ON app.serial = device.app AND app.ended_at IS NULL
                    WHERE seen_at <= :wall AND seen_served <= :served AND \(reason.condition)
                        \(shards.condition(on: "device.serial")) LIMIT :limit
                    """)
            let rows = try Row.fetchAll(
                select,
                arguments: shards.arguments(with: [
                    "wall": cutoff.wall.milliseconds, "served": cutoff.served, "limit": limit,
                ]))
            return try rows.map { row in
                guard let app = AppID(row[2] as String) else {
                    throw StoreFault(.unavailable, "a device's row cannot be read")
                }
                return UnusedDevice(
                    serial: DeviceSerial(row[0]), id: DeviceID(try row.bytes16("id")), app: app,
                    seenAt: row.timestamp(at: 3))
            }
        }
    }
}

extension UnusedDevice.Reason {
    fileprivate var tables: String {
        switch self {
        case .suspended: "device_profile AS profile JOIN device ON device.serial = profile.device"
        case .inactive, .anonymousIdle, .anonymousUnused: "device"
        }
    }

    fileprivate var condition: String {
        switch self {
        case .inactive: "NOT is_anonymous"
        case .suspended: "reason IS NOT NULL AND status_at <= :wall AND status_served <= :served AND NOT is_anonymous"
        case .anonymousIdle: "is_anonymous"
        case .anonymousUnused:
            "is_anonymous AND NOT EXISTS (SELECT 1 FROM channel WHERE channel.device = device.serial)"
        }
    }
}
