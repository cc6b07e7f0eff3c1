import CarillonCore
import CarillonWire
import GRDB

/// Writes the decisions of ``OutboxRules`` about pushes, inside a transaction.
struct PushChangeWriter {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// - Parameter fence: The change is written only if the push has the lease with this fence. Nil writes the change in any
    ///   case, and is for changes that end no lease.
    /// - Returns: Whether the change was written.
    func write(_ change: PushChange, to push: Int64, ifLeased fence: Int64?) throws -> Bool {
        switch change {
        case .finished(let finish): try write(finish, to: push, ifLeased: fence)
        case .leased(let end, let fence):
            try db.run(
                """
                UPDATE push SET state = \(PushState.leased.rawValue), due_at = ?, fence = ?, attempts = attempts + 1
                WHERE serial = ?
                """, [end.milliseconds, fence, push])
        case .suspended:
            try db.run(
                "UPDATE push SET due_at = NULL, state = \(PushState.scheduled.rawValue) WHERE serial = ?", [push])
        case .putOff(let dueAt, let at):
            try db.run(
                "UPDATE push SET due_at = ?, set_at = ? WHERE serial = ?", [dueAt.milliseconds, at.milliseconds, push])
        case .retried(let dueAt, let reason, let attempts, let at):
            try db.run(
                """
                UPDATE push SET state = \(PushState.scheduled.rawValue), due_at = :due, set_at = :at, reason = :reason,
                    attempts = attempts - :attempts WHERE serial = :serial AND \(Self.isInForce)
                """,
                [
                    "due": dueAt.milliseconds, "at": at.milliseconds, "reason": reason, "attempts": attempts, "serial": push,
                    "fence": fence,
                ])
        case .elsewhere(let queue, let at):
            try db.run(
                """
                UPDATE push SET state = \(PushState.scheduled.rawValue), lane = :lane, due_at = :at, set_at = :at,
                    is_elsewhere = 1
                WHERE serial = :serial AND \(Self.isInForce)
                """, ["lane": queue.number, "at": at.milliseconds, "serial": push, "fence": fence])
        case .restarted(let queue, let at):
            try db.run(
                """
                UPDATE push SET state = \(PushState.scheduled.rawValue), lane = :lane, due_at = :at, set_at = :at,
                    is_elsewhere = 0, attempts = 0
                WHERE serial = :serial AND \(Self.isInForce)
                """, ["lane": queue.number, "at": at.milliseconds, "serial": push, "fence": fence])
        case .kept(let end): try db.run("UPDATE push SET ends_at = ? WHERE serial = ?", [end.milliseconds, push])
        }
        return db.changesCount > 0
    }

    private static let isInForce = "(:fence IS NULL OR state = \(PushState.leased.rawValue) AND fence = :fence)"

    private func write(_ finish: PushFinish, to push: Int64, ifLeased fence: Int64?) throws {
        var update = try BoundStatement(
            db,
            """
            UPDATE push SET state = ?, state_at = ?, state_served = (SELECT seconds FROM served), due_at = NULL, ends_at = ?,
                awaits_address = ?, reason = ?
            WHERE serial = ? AND \(Self.isInForce)
            """)
        update.bind(finish.state.rawValue)
        update.bind(finish.at.milliseconds)
        update.bind(finish.endsAt.milliseconds)
        update.bind(finish.awaitsAddress ? 1 : 0)
        update.bind(finish.reason)
        update.bind(push)
        update.bind(fence)
        try update.run()
    }

    /// Cancels a push, and keeps its reason.
    func cancel(_ push: Int64, until end: Timestamp, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE push SET state = \(PushState.cancelled.rawValue), state_at = ?,
                state_served = (SELECT seconds FROM served), due_at = NULL, ends_at = ?
            WHERE serial = ?
            """, [now.milliseconds, end.milliseconds, push])
    }

    /// Makes a parked push due.
    func requeue(_ push: Int64, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE push SET state = \(PushState.scheduled.rawValue), state_at = :now, due_at = :now, set_at = :now,
                ends_at = expires_at, reason = NULL, awaits_address = 0
            WHERE serial = :serial
            """, ["now": now.milliseconds, "serial": push])
    }

    // MARK: Addresses

    /// Starts an alert again.
    func readdress(_ alert: UnacceptedAlerts.Sending, to queue: PushQueue, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE push SET state_at = CASE state WHEN \(PushState.scheduled.rawValue) THEN state_at ELSE :now END,
                state = \(PushState.scheduled.rawValue), lane = :lane, due_at = :due, set_at = :now, ends_at = expires_at,
                is_elsewhere = 0, attempts = 0, awaits_address = 0, reason = NULL
            WHERE serial = :serial
            """,
            [
                "now": now.milliseconds, "lane": queue.number, "due": alert.dueAt.milliseconds, "serial": alert.serial,
            ])
    }

    /// Notes that a wake replaces an alert.
    func fold(_ alert: Readdressing.Fold, at now: Timestamp) throws {
        if alert.isCancelled {
            try db.run(
                """
                UPDATE push SET state = \(PushState.cancelled.rawValue), state_at = ?, due_at = NULL, awaits_address = 0
                WHERE serial = ?
                """, [now.milliseconds, alert.serial])
        } else {
            try db.run("UPDATE push SET awaits_address = 0 WHERE serial = ?", [alert.serial])
        }
    }

    /// Moves a scheduled push to a push queue.
    func move(_ push: Readdressing.Move, to queue: PushQueue, at now: Timestamp) throws {
        try db.run(
            "UPDATE push SET lane = ?, is_elsewhere = 0, set_at = ?, due_at = ? WHERE serial = ?",
            [queue.number, now.milliseconds, push.dueAt.milliseconds, push.serial])
    }

    /// Moves the pushes of a device that are leased or parked to a push queue.
    func moveUnscheduled(of device: DeviceSerial, to queue: PushQueue) throws {
        try db.run(
            """
            UPDATE push SET lane = ?, is_elsewhere = 0
            WHERE device = ? AND state IN (\(PushState.leased.rawValue), \(PushState.parked.rawValue))
            """, [queue.number, device.rawValue])
    }
}
