import CarillonCore
import GRDB

/// Writes the decisions of ``WakeRules`` about the wake of a device, inside a transaction.
struct WakeChangeWriter {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// - Parameter push: The serial number of the push that was added with the row, if there is one.
    func write(_ row: WakeChanges.Row, of device: DeviceSerial, push: Int64? = nil) throws {
        switch row {
        case .due(let queue, let dueAt, let at): try put(device, queue, dueAt, at: at)
        case .idle: try db.run("UPDATE wake SET due_at = NULL WHERE device = ?", [device.rawValue])
        case .pushed:
            // Without the serial number, the wake would never end.
            guard let push else { throw StoreFault(.unavailable, "the push of a wake was not inserted") }
            var update = try BoundStatement(db, "UPDATE wake SET due_at = NULL, push = ? WHERE device = ?")
            update.bind(push)
            update.bind(device.rawValue)
            try update.run()
        case .paced(let wake):
            try db.run(
                "UPDATE wake SET due_at = ?, unanswered = ?, pushed_at = ? WHERE device = ?",
                [wake.dueAt?.milliseconds, wake.pace.unanswered, wake.pace.pushedAt?.milliseconds, device.rawValue])
        case .ended(let wake, let at): try end(device, wake, at: at)
        case .endedOutOfReach(let unanswered, let pushedAt):
            try db.run(
                """
                UPDATE wake SET push = NULL, unanswered = unanswered + ?, pushed_at = coalesce(?, pushed_at)
                WHERE device = ?
                """, [unanswered, pushedAt?.milliseconds, device.rawValue])
        case .moved(let queue): try db.run("UPDATE wake SET lane = ? WHERE device = ?", [queue.number, device.rawValue])
        case .readdressed(let queue):
            try db.run("UPDATE wake SET lane = ?, unanswered = 0 WHERE device = ?", [queue.number, device.rawValue])
        case .removed: try db.run("DELETE FROM wake WHERE device = ?", [device.rawValue])
        }
    }

    private func put(_ device: DeviceSerial, _ queue: PushQueue, _ dueAt: Timestamp, at now: Timestamp) throws {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO wake (device, lane, due_at, set_at) VALUES (?, ?, ?, ?)
            ON CONFLICT (device) DO UPDATE SET lane = excluded.lane, due_at = excluded.due_at, set_at = excluded.set_at
            """)
        insert.bind(device.rawValue)
        insert.bind(queue.number)
        insert.bind(dueAt.milliseconds)
        insert.bind(now.milliseconds)
        try insert.run()
    }

    private func end(_ device: DeviceSerial, _ wake: DeviceWake, at now: Timestamp) throws {
        var update = try BoundStatement(
            db, "UPDATE wake SET push = NULL, due_at = ?, set_at = ?, unanswered = ?, pushed_at = ? WHERE device = ?")
        update.bind(wake.dueAt?.milliseconds)
        update.bind(now.milliseconds)
        update.bind(wake.pace.unanswered)
        update.bind(wake.pace.pushedAt?.milliseconds)
        update.bind(device.rawValue)
        try update.run()
    }
}
