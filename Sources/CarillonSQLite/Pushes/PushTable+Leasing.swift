import CarillonCore
import CarillonWire
import GRDB

/// Leases due pushes, after a check that they must still be sent.
extension PushTable {
    /// Returns the push queues with due work. The statement searches the index once for each push queue.
    func dueQueues(in shards: ShardSet, at now: Timestamp) throws -> [PushQueue] {
        let tables = ["push", "wake"]
        let queues = tables.map { table in
            """
            \(table)_lane (lane) AS (
                SELECT min(lane) FROM \(table) WHERE due_at NOT NULL
                UNION ALL
                SELECT (SELECT min(lane) FROM \(table) WHERE lane > \(table)_lane.lane AND due_at NOT NULL)
                FROM \(table)_lane WHERE lane NOT NULL
            )
            """
        }
        let due = tables.map { table in
            """
            SELECT lane FROM \(table)_lane WHERE lane NOT NULL
                AND (SELECT min(due_at) FROM \(table) WHERE \(table).lane = \(table)_lane.lane AND due_at NOT NULL
                    \(shards.condition(on: "\(table).device"))) <= :now
            """
        }
        var select = try BoundStatement(
            db,
            "WITH RECURSIVE \(queues.joined(separator: ", ")) \(due.joined(separator: " UNION ")) ORDER BY lane")
        select.bind(shards)
        select.bind(now.milliseconds)
        return try select.all { columns in PushQueue(number: columns.integer(0)) }
    }

    func lease(
        _ queue: PushQueue, in shards: ShardSet, limit: Int, at now: Timestamp, until end: Timestamp
    ) throws -> LeasedPushes {
        var leased = LeasedPushes()
        let due = try dueRows(of: queue, in: shards, limit: limit, at: now)
        var turns = AlertTurns()
        for row in due {
            let push = row.push
            // Alerts that were collected while the push queue was paused are not sent all at once.
            if turns.concerns(push.kind) {
                let last = try reader.reach(of: push.device).alertLeasedAt
                if let later = turns.later(push.device, after: last, at: now) {
                    try apply(.putOff(later, at: now), to: push.serial, of: push.device)
                    continue
                }
            }
            do {
                if let push = try lease(row, at: now, until: end) { leased.pushes.append(push) }
            } catch is StoreFault {
                // A push that cannot be read does not delay the others.
                let parked = rules.finish(
                    push.kind, as: .parked, because: OutboxRules.unreadable, expiresAt: push.expiresAt, at: now)
                try apply(.finished(parked), to: push.serial, of: push.device)
            }
        }
        let wakeTable = WakeTable(db, memory: memory)
        let wakes = try dueWakes(of: queue, in: shards, limit: limit - due.count, at: now)
        for wake in wakes {
            if let push = try wakeTable.lease(wake, at: now, until: end) { leased.pushes.append(push) }
        }
        leased.areMoreDue = due.count + wakes.count == limit
        return leased
    }

    private struct DueRow {
        var push: DuePush
        var id: Bytes16
        var position: Int64
        var isElsewhere: Bool
        var isShortened: Bool
    }

    private func dueRows(of queue: PushQueue, in shards: ShardSet, limit: Int, at now: Timestamp) throws -> [DueRow] {
        var select = try BoundStatement(
            db,
            """
            SELECT push.serial, push.id, push.device, push.kind, push.last, push.attempts, push.fence, push.is_elsewhere,
                push.expires_at, push.badge, push.is_shortened, profile.token, profile.revision
            FROM push \(Self.joinAddress(of: "push"))
            WHERE push.lane = ? AND push.due_at <= ? \(shards.condition(on: "push.device"))
            ORDER BY push.due_at LIMIT ?
            """)
        select.bind(queue.number)
        select.bind(now.milliseconds)
        select.bind(shards)
        select.bind(limit)
        return try select.all { columns in
            try DueRow(
                push: DuePush(
                    serial: columns.integer(0), device: DeviceSerial(columns.integer(2)),
                    kind: PushKind(rawValue: Int(columns.integer(3))) ?? .wake, queue: queue,
                    expiresAt: columns.timestamp(8), attempts: Int(columns.integer(5)), fence: columns.integer(6),
                    badge: columns.integerIfAny(9).map { Int($0) }, address: PushAddress(ifAny: columns, from: 11)),
                id: columns.bytes16(1), position: columns.integer(4), isElsewhere: columns.integer(7) != 0,
                isShortened: columns.integer(10) != 0)
        }
    }

    private func dueWakes(of queue: PushQueue, in shards: ShardSet, limit: Int, at now: Timestamp) throws -> [DueWake] {
        guard limit > 0 else { return [] }
        var select = try BoundStatement(
            db,
            """
            SELECT wake.device, wake.due_at, wake.set_at, profile.token, profile.revision
            FROM wake \(Self.joinAddress(of: "wake"))
            WHERE wake.lane = ? AND wake.due_at <= ? \(shards.condition(on: "wake.device"))
            ORDER BY wake.due_at LIMIT ?
            """)
        select.bind(queue.number)
        select.bind(now.milliseconds)
        select.bind(shards)
        select.bind(limit)
        return try select.all { columns in
            DueWake(
                device: DeviceSerial(columns.integer(0)), queue: queue, dueAt: columns.timestamp(1),
                setAt: columns.timestamp(2), address: PushAddress(ifAny: columns, from: 3))
        }
    }

    /// Returns SQL that joins the address of a device. It finds no profile if no push can be sent to the device, or its app was
    /// deleted.
    private static func joinAddress(of table: String) -> String {
        """
        LEFT JOIN device_profile AS profile ON profile.device = \(table).device AND profile.token NOT NULL
            AND profile.reason IS NULL
            AND EXISTS (SELECT 1 FROM app WHERE app.serial = profile.app AND app.ended_at IS NULL)
        """
    }

    /// Checks the push again, because its facts can have changed since it was scheduled.
    private func lease(_ row: DueRow, at now: Timestamp, until end: Timestamp) throws -> LeasedPush? {
        let push = row.push
        var facts = LeaseFacts()
        var envelope: Envelope?
        while true {
            switch rules.lease(push, at: now, until: end, knowing: facts) {
            case .needs(.device):
                let found = try Int64.first(db, "SELECT 1 FROM device WHERE serial = ?", [push.device.rawValue])
                facts.hasDevice = found != nil
            case .needs(.alertText): facts.hasAlertText = try reader.hasAlertText(push.queue.app)
            case .needs(.envelope):
                envelope = try self.envelope(of: row)
                facts.hasEnvelope = envelope != nil
                facts.countsBadge = envelope?.countsBadge ?? false
            case .needs(.waking):
                var reach = try reader.reach(of: push.device)
                facts.isWaking = try WaitingWakes(db, index: memory.index).areAny(of: push.device, &reach, at: now)
                memory.pushes[push.device] = reach
            case .decided(let ruling): return try write(ruling, to: row, envelope, at: now)
            }
        }
    }

    private func write(
        _ ruling: OutboxRules.LeaseRuling, to row: DueRow, _ envelope: Envelope?, at now: Timestamp
    ) throws -> LeasedPush? {
        let push = row.push
        var content = LeasedPush.Content.wake
        if let envelope {
            let badge = try ruling.countsBadge ? countBadge(push.serial, push.device) : push.badge
            let topic = try ruling.hasTopic ? self.topic(at: row.position) : nil
            content = .alert(envelope, topic: topic, badge: badge ?? 0)
        }
        if ruling.startsPace {
            var reach = try reader.reach(of: push.device)
            reach.alertLeasedAt = now
            memory.pushes[push.device] = reach
        }
        try apply(ruling.change, to: push.serial, of: push.device)
        if ruling.isFolded { try notifyByWake(push.serial, push.device, at: now) }
        guard case .leased(_, let fence) = ruling.change, let address = push.address else { return nil }
        return LeasedPush(
            lease: WorkLease(work: push.serial, fence: fence), id: row.id, kind: push.kind, device: push.device,
            queue: push.queue, token: address.token, addressRevision: address.revision, attempt: push.attempts + 1,
            isElsewhere: row.isElsewhere, expiresAt: push.expiresAt, content: content, isShortened: row.isShortened)
    }

    private func envelope(of row: DueRow) throws -> Envelope? {
        if let waiting = try envelope(at: row.position) { return waiting }
        guard row.push.kind.hasCopy else { return nil }
        return try KeptPushTable(db).envelope(
            row.push.serial, at: row.position, of: row.push.device, expiresAt: row.push.expiresAt)
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
}

extension PushAddress {
    /// Returns nil if the statement found no address.
    ///
    /// - Parameter place: The column of the token. The revision follows.
    fileprivate init?(ifAny columns: StatementColumns, from place: Int32) {
        guard let token = columns.bytes(place).flatMap(PushToken.init(stored:)) else { return nil }
        self.init(token: token, revision: columns.integer(place + 1))
    }
}
