import CarillonCore
import CarillonWire
import GRDB

/// Pushes that are due are given out, after another look at whether they are still to be sent.
extension PushTable {
    func dueLanes(at now: Timestamp) throws -> [PushLane] {
        var lanes = Set<Int64>()
        for table in ["push", "wake"] {
            // One look at the index for each lane that there is.
            var select = try BoundStatement(
                db,
                """
                WITH RECURSIVE lanes (lane) AS (
                    SELECT min(lane) FROM \(table) WHERE due_at NOT NULL
                    UNION ALL
                    SELECT (SELECT min(lane) FROM \(table) WHERE lane > lanes.lane AND due_at NOT NULL)
                    FROM lanes WHERE lane NOT NULL
                )
                SELECT lane FROM lanes WHERE lane NOT NULL
                    AND (SELECT min(due_at) FROM \(table) WHERE \(table).lane = lanes.lane AND due_at NOT NULL) <= ?
                """)
            select.bind(now.milliseconds)
            try select.forEachRow { columns in
                lanes.insert(columns.integer(0))
                return true
            }
        }
        return lanes.sorted().compactMap(PushLane.init(number:))
    }

    func lease(_ lane: PushLane, limit: Int, at now: Timestamp, until end: Timestamp) throws -> LeasedPushes {
        var leased = LeasedPushes()
        let due = try dueRows(of: lane, limit: limit, at: now)
        var putOff: [DeviceSerial: Int64] = [:]
        for row in due {
            // What gathered while the lane was closed does not come all at once.
            if row.kind == .alert, let free = try nextAlert(of: row.device, at: now) {
                try setDue(
                    row.serial, free.adding(seconds: putOff[row.device, default: 0] * PushLimits.secondsBetweenAlerts),
                    at: now)
                putOff[row.device, default: 0] += 1
                continue
            }
            do {
                if let push = try lease(row, lane, at: now, until: end) { leased.pushes.append(push) }
            } catch is StoreFault {
                // What cannot be read holds up nothing else.
                try finish(row.serial, row.device, row.kind, .parked, Self.unreadable, at: now)
            }
        }
        let wakeTable = WakeTable(db, memory: memory)
        let wakes = try dueWakes(of: lane, limit: limit - due.count, at: now)
        for wake in wakes {
            if let push = try wakeTable.lease(wake, at: now, until: end) { leased.pushes.append(push) }
        }
        leased.areMoreDue = due.count + wakes.count == limit
        return leased
    }

    /// Nil when an alert of the device may go out now.
    private func nextAlert(of device: DeviceSerial, at now: Timestamp) throws -> Timestamp? {
        guard let last = try reader.reach(of: device).alertLeasedAt, last <= now else { return nil }
        let free = last.adding(seconds: PushLimits.secondsBetweenAlerts)
        return free > now ? free : nil
    }

    private var reader: ReachReader { ReachReader(db, memory: memory) }

    private struct DueRow {
        var serial: Int64
        var id: Bytes16
        var device: DeviceSerial
        var kind: PushKind
        var position: Int64
        var attempts: Int
        var fence: Int64
        var isElsewhere: Bool
        var expiresAt: Timestamp
        /// Nil until it was given out once.
        var badge: Int?
        var isShortened: Bool
    }

    private func dueRows(of lane: PushLane, limit: Int, at now: Timestamp) throws -> [DueRow] {
        var select = try BoundStatement(
            db,
            """
            SELECT serial, id, device, kind, last, attempts, fence, is_elsewhere, expires_at, badge, is_shortened
            FROM push
            WHERE lane = ? AND due_at <= ? ORDER BY due_at LIMIT ?
            """)
        select.bind(lane.number)
        select.bind(now.milliseconds)
        select.bind(limit)
        var rows: [DueRow] = []
        try select.forEachRow { columns in
            rows.append(
                DueRow(
                    serial: columns.integer(0), id: try columns.bytes16(1), device: DeviceSerial(columns.integer(2)),
                    kind: PushKind(rawValue: Int(columns.integer(3))) ?? .wake, position: columns.integer(4),
                    attempts: Int(columns.integer(5)), fence: columns.integer(6), isElsewhere: columns.integer(7) != 0,
                    expiresAt: columns.timestamp(8), badge: columns.integerIfAny(9).map { Int($0) },
                    isShortened: columns.integer(10) != 0))
            return true
        }
        return rows
    }

    private func dueWakes(of lane: PushLane, limit: Int, at now: Timestamp) throws -> [DueWake] {
        guard limit > 0 else { return [] }
        var select = try BoundStatement(
            db, "SELECT device, due_at, set_at FROM wake WHERE lane = ? AND due_at <= ? ORDER BY due_at LIMIT ?")
        select.bind(lane.number)
        select.bind(now.milliseconds)
        select.bind(limit)
        var wakes: [DueWake] = []
        try select.forEachRow { columns in
            wakes.append(
                DueWake(
                    device: DeviceSerial(columns.integer(0)), lane: lane, dueAt: columns.timestamp(1),
                    setAt: columns.timestamp(2)))
            return true
        }
        return wakes
    }

    /// Looks at it again: much may have happened since it was decided.
    private func lease(_ row: DueRow, _ lane: PushLane, at now: Timestamp, until end: Timestamp) throws -> LeasedPush? {
        guard row.expiresAt > now else {
            try finish(row.serial, row.device, row.kind, .expired, nil, at: now)
            return nil
        }
        guard let address = try reader.address(of: row.device) else {
            if try Int64.first(db, "SELECT 1 FROM device WHERE serial = ?", [row.device.rawValue]) == nil {
                try finish(row.serial, row.device, row.kind, .cancelled, nil, at: now)
                return nil
            }
            // Until the device can be reached, or its time is over.
            try db.run(
                "UPDATE push SET due_at = NULL, state = \(PushState.scheduled.rawValue) WHERE serial = ?", [row.serial])
            return nil
        }
        var content = LeasedPush.Content.wake
        switch row.kind {
        case .alert, .trigger, .unconditional:
            if row.kind == .alert, try !reader.hasAlertText(lane.app) {
                // There is nothing to be shown any more.
                try finish(row.serial, row.device, row.kind, .cancelled, nil, at: now)
                try tellByWake(row.serial, row.device, at: now)
                return nil
            }
            guard let envelope = try envelope(of: row) else {
                try finish(row.serial, row.device, row.kind, .cancelled, nil, at: now)
                return nil
            }
            var badge = row.badge
            if badge == nil, envelope.countsBadge { badge = try countBadge(row.serial, row.device) }
            // What is always pushed takes no other's place.
            let topic = row.kind == .unconditional ? nil : try topic(at: row.position)
            content = .alert(envelope, topic: topic, badge: badge ?? 0)
            if row.kind == .alert {
                var reach = try reader.reach(of: row.device)
                reach.alertLeasedAt = now
                memory.pushes[row.device] = reach
            }
        case .wake:
            var reach = try reader.reach(of: row.device)
            let isWanted = try WaitingWakes(db, index: memory.index).areAny(of: row.device, &reach, at: now)
            memory.pushes[row.device] = reach
            guard isWanted else {
                try finish(row.serial, row.device, .wake, .cancelled, nil, at: now)
                return nil
            }
        }
        let lease = WorkLease(work: row.serial, fence: row.fence + 1)
        try db.run(
            """
            UPDATE push SET state = \(PushState.leased.rawValue), due_at = ?, fence = ?, attempts = attempts + 1
            WHERE serial = ?
            """, [end.milliseconds, lease.fence, row.serial])
        return LeasedPush(
            lease: lease, id: row.id, device: row.device, lane: lane, token: address.token,
            addressRevision: address.revision, attempt: row.attempts + 1, isElsewhere: row.isElsewhere,
            expiresAt: row.expiresAt, content: content, isShortened: row.isShortened)
    }

    private func envelope(of row: DueRow) throws -> Envelope? {
        if let waiting = try envelope(at: row.position) { return waiting }
        guard row.kind == .unconditional else { return nil }
        return try KeptPushTable(db).envelope(row.serial, at: row.position, of: row.device, expiresAt: row.expiresAt)
    }

    private func envelope(at position: Int64) throws -> Envelope? {
        var select = try BoundStatement(db, "SELECT \(Envelope.columns) FROM envelope WHERE position = ?")
        select.bind(position)
        return try select.first(Envelope.init)
    }

    private func topic(at position: Int64) throws -> String? {
        var select = try BoundStatement(db, "SELECT topic FROM envelope WHERE position = ?")
        select.bind(position)
        return try select.first { $0.text(0) } ?? nil
    }

    private func countBadge(_ serial: Int64, _ device: DeviceSerial) throws -> Int {
        let badge = try Int64.first(
            db, "UPDATE device_profile SET badge = badge + 1 WHERE device = ? RETURNING badge", [device.rawValue])
        try db.run("UPDATE push SET badge = ? WHERE serial = ?", [badge, serial])
        return Int(badge ?? 0)
    }

    private func setDue(_ serial: Int64, _ dueAt: Timestamp, at now: Timestamp) throws {
        try db.run(
            "UPDATE push SET due_at = ?, set_at = ? WHERE serial = ?", [dueAt.milliseconds, now.milliseconds, serial])
    }
}

extension Envelope {
    /// Whether the alert for it counts in the number on the app's icon.
    fileprivate var countsBadge: Bool {
        if case .fired(_, let countsBadge) = kind { countsBadge } else { true }
    }
}
