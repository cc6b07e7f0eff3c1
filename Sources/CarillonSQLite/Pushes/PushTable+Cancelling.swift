import CarillonCore
import CarillonWire
import GRDB

/// Cancels pushes with their device, or with the user of their device.
extension PushTable {
    /// Cancels all pushes of a deleted device.
    func cancelAll(of device: DeviceSerial, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE push SET state = \(PushState.cancelled.rawValue), state_at = ?,
                state_served = (SELECT seconds FROM served), due_at = NULL, ends_at = ?
            WHERE device = ? AND state IN (\(PushState.scheduled.rawValue), \(PushState.parked.rawValue))
            """, [now.milliseconds, rules.cancelledUntil(now).milliseconds, device.rawValue])
        db.count(db.changesCount, of: Self.cancelled)
        try KeptPushTable(db).removeAll(of: device)
        memory.pushes[device] = nil
    }

    // MARK: Another user

    private static let isCancellable = "state IN (\(PushState.scheduled.rawValue), \(PushState.parked.rawValue))"

    /// Cancels pushes of subscriptions of the device's user, also those whose envelope was acknowledged.
    func cancelOfUser(of device: DeviceSerial, at now: Timestamp) throws {
        try cancel(
            try Int64.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT serial FROM push JOIN kept_push ON kept_push.push = push.serial
                        WHERE push.device = ?1 AND \(Self.isCancellable) AND kept_push.subscription IN
                            (SELECT serial FROM subscription WHERE device = ?1 AND user NOT NULL)
                        """), arguments: [device.rawValue]), of: device, at: now)
    }

    /// Cancels pushes for envelopes that ended with the device's user. Also cancels the wake if no other envelope wakes the
    /// device.
    func cancel(of device: DeviceSerial, forEndedAt positions: [Int64], at now: Timestamp) throws {
        guard !positions.isEmpty else { return }
        let ended = Set(positions)
        let pushes = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT serial, last FROM push
                    WHERE device = ? AND kind <> \(PushKind.wake.rawValue) AND \(Self.isCancellable)
                    """), arguments: [device.rawValue])
        try cancel(pushes.filter { ended.contains($0[1]) }.map { $0[0] }, of: device, at: now)
        var reach = PushReach()
        guard try !WaitingWakes(db, index: memory.index).areAny(of: device, &reach, at: now) else { return }
        let wakes = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT serial, EXISTS (SELECT 1 FROM wake WHERE wake.device = push.device AND wake.push = push.serial)
                    FROM push WHERE device = ? AND kind = \(PushKind.wake.rawValue) AND \(Self.isCancellable)
                    """), arguments: [device.rawValue])
        try cancel(wakes.map { $0[0] }, of: device, at: now)
        let isPushCancelled = wakes.contains { ($0[1] as Int64) != 0 }
        try WakeTable(db, memory: memory).reasonsEnded(of: device, isPushCancelled: isPushCancelled, at: now)
    }

    private func cancel(_ pushes: [Int64], of device: DeviceSerial, at now: Timestamp) throws {
        for push in pushes {
            try writer.cancel(push, until: rules.cancelledUntil(now), at: now)
            try KeptPushTable(db).remove(push)
        }
        db.count(pushes.count, of: Self.cancelled)
        // The cached reach has outdated numbers of pushes.
        memory.pushes[device] = nil
    }
}
