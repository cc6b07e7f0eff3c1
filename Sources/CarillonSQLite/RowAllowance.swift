import CarillonCore
import GRDB
import Metrics

/// How many rows of one kind each device may keep: outcomes that nobody asked for yet, and idempotency keys. Beyond it the
/// oldest are forgotten, a few more than must be, so that it is not done each time.
struct RowAllowance {
    private let db: Database
    private let usage: InboxUsage
    private let kind: InboxUsage.Kept
    private let limit: Int

    static func outcomes(_ db: Database, _ usage: InboxUsage, _ settings: SQLiteStore.Settings) -> RowAllowance {
        RowAllowance(db: db, usage: usage, kind: .outcomes, limit: settings.outcomesPerDevice)
    }

    static func keys(_ db: Database, _ usage: InboxUsage, _ settings: SQLiteStore.Settings) -> RowAllowance {
        RowAllowance(db: db, usage: usage, kind: .keys, limit: settings.idempotencyKeysPerDevice)
    }

    /// To be said after the rows were added.
    func added(_ count: Int, for device: DeviceSerial) throws {
        let kept: Int
        if let known = usage.changeKept(kind, of: device, by: count) {
            kept = known
        } else {
            kept = try read(device)
            usage.setKept(kind, of: device, to: kept)
        }
        guard kept > limit else { return }
        try forget(kept - limit + limit / 16, of: device)
        usage.setKept(kind, of: device, to: kept - db.changesCount)
        forgotten[kind]?.increment(by: db.changesCount)
    }

    func removed(_ count: Int, for device: DeviceSerial) { _ = usage.changeKept(kind, of: device, by: -count) }

    private func read(_ device: DeviceSerial) throws -> Int {
        let sql =
            switch kind {
            case .outcomes: "SELECT count(*) FROM envelope WHERE device = ? AND outcome IS NOT NULL"
            case .keys: "SELECT count(*) FROM idempotency WHERE device = ?"
            }
        return try Int.fetchOne(db.cachedStatement(sql: sql), arguments: [device.rawValue]) ?? 0
    }

    private func forget(_ count: Int, of device: DeviceSerial) throws {
        let sql =
            switch kind {
            case .outcomes:
                """
                DELETE FROM envelope WHERE position IN (SELECT position FROM envelope
                    WHERE device = ? AND outcome IS NOT NULL ORDER BY position LIMIT ?)
                """
            case .keys:
                """
                DELETE FROM idempotency WHERE (channel, key_hash) IN (SELECT channel, key_hash FROM idempotency
                    WHERE device = ? ORDER BY valid_until LIMIT ?)
                """
            }
        try db.execute(sql: sql, arguments: [device.rawValue, count])
    }
}

private let forgotten: [InboxUsage.Kept: Counter] = [
    .outcomes: Counter(label: "carillon_outcomes_forgotten"),
    .keys: Counter(label: "carillon_idempotency_keys_forgotten"),
]
