import CarillonCore
import CarillonWire
import GRDB

/// A device has another address, or can be reached again: the alerts that were not accepted before go there.
extension PushTable {
    /// The device cannot be reached: its alerts wait in the outbox until it can, or their time is over.
    func hold(of device: DeviceSerial) throws {
        try db.run(
            "UPDATE push SET due_at = NULL WHERE device = ? AND state = \(PushState.scheduled.rawValue)",
            [device.rawValue])
    }

    /// The token of the device turned out to be of another environment.
    func move(of device: DeviceSerial, to lane: PushLane) throws {
        try db.run(
            "UPDATE push SET lane = ? WHERE device = ? AND state = \(PushState.scheduled.rawValue)",
            [lane.number, device.rawValue])
    }

    /// Answers the position of the first message that a wake is to tell of instead; nil when there is none.
    ///
    /// - Parameter hasOtherAddress: Whether the address is another one, and not only of use again.
    func readdress(
        of device: DeviceSerial, to lane: PushLane, hasOtherAddress: Bool, at now: Timestamp
    ) throws -> Int64? {
        let folded = try readdressAlerts(of: device, to: lane, hasOtherAddress: hasOtherAddress, at: now)
        // What the vendor said of the address before holds up nothing.
        try db.run(
            """
            UPDATE push SET lane = :lane, is_elsewhere = 0, set_at = :now,
                due_at = iif(due_at IS NULL OR :isOther AND reason NOT NULL, :now, due_at)
            WHERE device = :device AND state = \(PushState.scheduled.rawValue)
            """,
            [
                "lane": lane.number, "now": now.milliseconds, "device": device.rawValue,
                "isOther": hasOtherAddress,
            ])
        // What is under way, or parked, goes there when it is tried again.
        try db.run(
            """
            UPDATE push SET lane = ?, is_elsewhere = 0
            WHERE device = ? AND state IN (\(PushState.leased.rawValue), \(PushState.parked.rawValue))
            """, [lane.number, device.rawValue])
        return folded
    }

    private func readdressAlerts(
        of device: DeviceSerial, to lane: PushLane, hasOtherAddress: Bool, at now: Timestamp
    ) throws -> Int64? {
        let alerts = UnacceptedAlerts(
            try unaccepted(device, lane, hasOtherAddress: hasOtherAddress, at: now), at: now)
        for alert in alerts.sent { try readdress(alert, to: lane, at: now) }
        var first: Int64?
        for serial in alerts.folded {
            guard let position = try fold(serial, at: now) else { continue }
            first = min(first ?? position, position)
        }
        db.count(alerts.folded.count, of: Self.folded)
        return first
    }

    private static let folded = ServerMetric.pushesFolded.counter()

    /// The oldest first. What was acknowledged meanwhile is not among them, nor what is over.
    private func unaccepted(
        _ device: DeviceSerial, _ lane: PushLane, hasOtherAddress: Bool, at now: Timestamp
    ) throws -> [UnacceptedAlerts.Alert] {
        let select = try db.cachedStatement(
            sql: """
                SELECT serial, iif(state = \(PushState.scheduled.rawValue) AND NOT (:isOther AND reason NOT NULL), due_at, NULL)
                FROM push
                WHERE device = :device AND kind <> \(PushKind.wake.rawValue) AND expires_at > :now
                    AND (state = \(PushState.scheduled.rawValue)
                            AND (due_at IS NULL OR lane <> :lane OR :isOther AND reason NOT NULL)
                        OR state = \(PushState.rejected.rawValue) AND awaits_address
                        OR state = \(PushState.parked.rawValue) AND awaits_address AND :isOther)
                    AND (EXISTS (SELECT 1 FROM envelope WHERE position = push.last)
                        OR state = \(PushState.scheduled.rawValue) AND kind = \(PushKind.unconditional.rawValue))
                ORDER BY serial
                """)
        let rows = try Row.fetchAll(
            select,
            arguments: [
                "device": device.rawValue, "lane": lane.number, "isOther": hasOtherAddress, "now": now.milliseconds,
            ])
        return rows.map { row in
            UnacceptedAlerts.Alert(serial: row[0], dueAt: (row[1] as Int64?).map(Timestamp.init(milliseconds:)))
        }
    }

    private func readdress(_ alert: UnacceptedAlerts.Sending, to lane: PushLane, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE push SET state_at = iif(state = \(PushState.scheduled.rawValue), state_at, :now),
                state = \(PushState.scheduled.rawValue), lane = :lane, due_at = :due, set_at = :now, ends_at = expires_at,
                is_elsewhere = 0, attempts = 0, awaits_address = 0, reason = NULL
            WHERE serial = :serial
            """,
            [
                "now": now.milliseconds, "lane": lane.number, "due": alert.dueAt.milliseconds, "serial": alert.serial,
            ])
    }

    /// Answers the position of its message, if that waits.
    private func fold(_ serial: Int64, at now: Timestamp) throws -> Int64? {
        // What was rejected remains so.
        try db.run(
            """
            UPDATE push SET state = \(PushState.cancelled.rawValue), state_at = ?, due_at = NULL
            WHERE serial = ? AND state <> \(PushState.rejected.rawValue)
            """, [now.milliseconds, serial])
        db.count(db.changesCount, of: Self.cancelled)
        try db.run("UPDATE push SET awaits_address = 0 WHERE serial = ?", [serial])
        try KeptPushTable(db).remove(serial)
        return try Int64.first(
            db, "UPDATE envelope SET wake = ? WHERE position = (SELECT last FROM push WHERE serial = ?) RETURNING position",
            [WakeMode.background.number, serial])
    }
}
