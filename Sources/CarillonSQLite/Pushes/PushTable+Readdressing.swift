import CarillonCore
import CarillonWire
import GRDB

/// Changes of pushes when their device has another address, or can or cannot be reached.
extension PushTable {
    /// Postpones the alerts of a device that cannot be reached, until it can be reached or the alerts expire.
    func hold(of device: DeviceSerial) throws {
        try db.run(
            "UPDATE push SET due_at = NULL WHERE device = ? AND state = \(PushState.scheduled.rawValue)",
            [device.rawValue])
    }

    /// Moves the pushes of a device whose token belongs to another environment.
    func move(of device: DeviceSerial, to queue: PushQueue) throws {
        try db.run(
            "UPDATE push SET lane = ? WHERE device = ? AND state = \(PushState.scheduled.rawValue)",
            [queue.number, device.rawValue])
    }

    /// Moves the pushes that were not accepted to a push queue. Returns the position of the first message for which a
    /// wake now replaces an alert; nil if no alert was replaced.
    ///
    /// - Parameter hasOtherAddress: Whether the address is a different one, and not only usable again.
    func readdress(
        of device: DeviceSerial, to queue: PushQueue, hasOtherAddress: Bool, at now: Timestamp
    ) throws -> Int64? {
        let pushes = try unaccepted(device, at: now)
        let changes = rules.readdress(pushes, to: queue, hasOtherAddress: hasOtherAddress, at: now)
        for alert in changes.sent { try writer.readdress(alert, to: queue, at: now) }
        var first: Int64?
        for alert in changes.folded {
            guard let position = try fold(alert, at: now) else { continue }
            first = min(first ?? position, position)
        }
        db.count(changes.folded.count, of: Self.folded)
        for push in changes.moved { try writer.move(push, to: queue, at: now) }
        // This follows the other changes, because an alert that was parked is sent or folded by then.
        if changes.movesUnscheduled { try writer.moveUnscheduled(of: device, to: queue) }
        return first
    }

    private static let folded = ServerMetric.pushesFolded.counter()

    /// Returns the pushes of a device that were not accepted, the oldest first. The envelope is read only if a push can start
    /// again.
    func unaccepted(_ device: DeviceSerial, at now: Timestamp) throws -> [UnacceptedPush] {
        var select = try BoundStatement(
            db,
            """
            SELECT serial, kind, state, lane, due_at, expires_at, reason IS NOT NULL, awaits_address,
                CASE WHEN kind = \(PushKind.wake.rawValue) OR state = \(PushState.leased.rawValue) OR expires_at <= ?1
                    OR state <> \(PushState.scheduled.rawValue) AND awaits_address = 0 THEN 0
                    ELSE EXISTS (SELECT 1 FROM envelope WHERE position = push.last) END
            FROM push
            WHERE device = ?2 AND state IN (\(PushState.scheduled.rawValue), \(PushState.leased.rawValue),
                \(PushState.rejected.rawValue), \(PushState.parked.rawValue))
            ORDER BY serial
            """)
        select.bind(now.milliseconds)
        select.bind(device.rawValue)
        return try select.all { columns in
            guard let state = PushState(rawValue: Int(columns.integer(2))) else { return nil }
            return UnacceptedPush(
                serial: columns.integer(0), kind: PushKind(rawValue: Int(columns.integer(1))) ?? .wake, state: state,
                queue: columns.integer(3), dueAt: columns.integerIfAny(4).map(Timestamp.init(milliseconds:)),
                expiresAt: columns.timestamp(5), hasReason: columns.integer(6) != 0,
                awaitsAddress: columns.integer(7) != 0, hasEnvelope: columns.integer(8) != 0)
        }
    }

    /// Replaces an alert by a wake. Returns the position of its message if the message is waiting.
    private func fold(_ alert: Readdressing.Fold, at now: Timestamp) throws -> Int64? {
        if alert.isCancelled { db.count(1, of: Self.cancelled) }
        try writer.fold(alert, at: now)
        try KeptPushTable(db).remove(alert.serial)
        return try Int64.first(
            db, "UPDATE envelope SET wake = ? WHERE position = (SELECT last FROM push WHERE serial = ?) RETURNING position",
            [WakeMode.background.number, alert.serial])
    }
}
