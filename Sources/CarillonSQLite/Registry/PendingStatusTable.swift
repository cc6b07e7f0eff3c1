import CarillonCore
import GRDB

/// The devices that must be notified of their status, inside a transaction.
struct PendingStatusTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func isPending(_ device: DeviceSerial, _ at: Timestamp) throws -> Bool {
        let select = "SELECT 1 FROM device_profile WHERE device = ? AND status_at = ? AND NOT is_told"
        return try Int.first(db, select, [device.rawValue, at.milliseconds]) != nil
    }

    func notified(_ device: DeviceSerial, _ at: Timestamp) throws -> Bool {
        try db.run(
            "UPDATE device_profile SET is_told = TRUE WHERE device = ? AND status_at = ? AND NOT is_told",
            [device.rawValue, at.milliseconds])
        return db.changesCount == 1
    }

    func pending(in shards: ShardSet, limit: Int) throws -> [PendingStatus] {
        var select = try BoundStatement(
            db,
            """
            SELECT device, app, reason, status_at FROM device_profile WHERE NOT is_told \(shards.condition(on: "device"))
            ORDER BY device LIMIT ?
            """)
        select.bind(shards)
        select.bind(limit)
        return try select.all { columns in
            let reason = columns.text(2).flatMap(SuspensionReason.init(rawValue:))
            return PendingStatus(
                device: DeviceSerial(columns.integer(0)), app: AppSerial(columns.integer(1)),
                status: reason.map { .suspended($0) } ?? .registered, at: columns.timestamp(3))
        }
    }
}
