import CarillonCore
import CarillonWire
import GRDB

/// An inserted push, with its serial and its identifier.
struct AddedPush {
    var serial: Int64
    var id: Bytes16
    var kind: PushKind
}

/// Inserts, ends and removes pushes of the outbox inside a transaction. `PushTable+Leasing.swift` leases pushes.
struct PushTable {
    let db: Database
    let memory: InboxMemory
    let rules: OutboxRules
    let writer: PushChangeWriter

    init(_ db: Database, memory: InboxMemory, settings: StoreSettings = StoreSettings()) {
        self.db = db
        self.memory = memory
        rules = OutboxRules(retentionSeconds: settings.inbox.outcomeRetentionSeconds)
        writer = PushChangeWriter(db)
    }

    var reader: ReachReader { ReachReader(db, memory: memory) }

    // MARK: Entering

    func insert(_ push: NewPush, of device: DeviceSerial, _ reach: inout PushReach) throws -> AddedPush {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO push (id, device, lane, kind, first, last, state, state_at, due_at, set_at, expires_at, ends_at,
                attempts, fence, is_shortened)
            VALUES (randomblob(16), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING serial, id
            """)
        insert.bind(device.rawValue)
        insert.bind(push.queue.number)
        insert.bind(push.kind.rawValue)
        insert.bind(push.span.first)
        insert.bind(push.span.last)
        insert.bind(push.state.rawValue)
        insert.bind(push.at.milliseconds)
        insert.bind(push.dueAt.milliseconds)
        insert.bind(push.at.milliseconds)
        insert.bind(push.span.expiresAt.milliseconds)
        insert.bind(push.span.expiresAt.milliseconds)
        insert.bind(push.leases)
        insert.bind(push.leases)
        insert.bind(push.isShortened ? 1 : 0)
        var inserted: AddedPush?
        // SQLite completes the statement only when all rows are read.
        try insert.forEachRow { columns in
            inserted = AddedPush(serial: columns.integer(0), id: try columns.bytes16(1), kind: push.kind)
            return true
        }
        guard let inserted else { throw StoreFault(.unavailable, "a push was not inserted") }
        reach.kept += 1
        let excess = rules.excess(of: reach.kept)
        if excess > 0 { reach.kept -= try forgetOldest(excess, of: device) }
        return inserted
    }

    /// Removes the oldest pushes of a device: finished pushes first, then parked pushes. Returns the number of removed pushes.
    private func forgetOldest(_ count: Int, of device: DeviceSerial) throws -> Int {
        let forgotten = try Int64.fetchAll(
            db.cachedStatement(
                sql: """
                    DELETE FROM push WHERE serial IN (SELECT serial FROM push
                        WHERE device = ? AND state BETWEEN \(PushState.handed.rawValue) AND \(PushState.parked.rawValue)
                        ORDER BY state = \(PushState.parked.rawValue), serial LIMIT ?)
                    RETURNING state
                    """), arguments: [device.rawValue, count])
        db.count(forgotten.count { $0 == PushState.parked.rawValue }, of: Self.parkedForgotten)
        return forgotten.count
    }

    private static let parkedForgotten = ServerMetric.parkedPushesForgotten.counter()

    // MARK: Ending

    /// Returns the state of the push after the end; nil if the lease is not in force.
    func end(_ end: PushEnd) throws -> PushState? {
        let ruling: OutboxRules.EndRuling
        do { ruling = try decide(end) } catch is StoreFault { ruling = rules.park(end, because: OutboxRules.unreadable) }
        return try apply(ruling, to: end)
    }

    private func decide(_ end: PushEnd) throws -> OutboxRules.EndRuling {
        var facts = EndFacts()
        while true {
            switch rules.end(end, knowing: facts) {
            case .needsRegistration:
                let registration = try RegistrationTable(db, memory: memory).registration(of: end.device)
                facts.registration = registration.map(memory.confirmations.applied)
                facts.isRegistrationRead = true
            case .decided(let ruling): return ruling
            }
        }
    }

    private func apply(_ ruling: OutboxRules.EndRuling, to end: PushEnd) throws -> PushState? {
        guard let change = ruling.change,
            try apply(change, to: end.lease.work, of: end.device, ifLeased: end.lease.fence)
        else { return nil }
        if ruling.keepsEnvironment { try keepEnvironment(end) }
        if let suspended = ruling.suspended {
            try RegistrationTable(db, memory: memory).storeSuspended(suspended, app: end.queue.app, at: end.at)
        }
        return ruling.state
    }

    /// Stores the environment that accepted the token.
    private func keepEnvironment(_ end: PushEnd) throws {
        try db.run(
            """
            UPDATE device_profile SET environment = ?1,
                said_environment = nullif(coalesce(said_environment, environment), ?1)
            WHERE device = ?2 AND revision = ?3 AND token NOT NULL AND environment <> ?1
            """,
            [end.queue.environment.rawValue, end.device.rawValue, end.addressRevision])
        guard db.changesCount > 0 else { return }
        try WakeTable(db, memory: memory).moved(end.device, to: end.queue)
    }

    /// - Parameter fence: The fence of the lease that the push must have; see ``PushChangeWriter/write(_:to:ifLeased:)``.
    /// - Returns: Whether the change was written.
    @discardableResult
    func apply(
        _ change: PushChange, to push: Int64, of device: DeviceSerial, ifLeased fence: Int64? = nil
    ) throws -> Bool {
        let isRemembered = memory.pushes[device] != nil
        guard try writer.write(change, to: push, ifLeased: fence) else { return false }
        guard case .finished(let finish) = change else { return true }
        if finish.removesCopy { try KeptPushTable(db).remove(push) }
        switch finish.state {
        case .cancelled: db.count(1, of: Self.cancelled)
        case .expired: db.count(1, of: Self.expired)
        case .scheduled, .leased, .handed, .rejected, .parked: break
        }
        // The numbers of a device that is not in memory are read later, without this push.
        guard isRemembered || finish.kind == .wake else { return true }
        try WakeTable(db, memory: memory).pushEnded(finish.kind, of: device, finish.state, at: finish.at)
        return true
    }

    /// Schedules a wake for the waiting message of an alert that is not shown. The wake is sent when the device can be reached.
    func notifyByWake(_ serial: Int64, _ device: DeviceSerial, at now: Timestamp) throws {
        let position = try Int64.first(
            db, "UPDATE envelope SET wake = ? WHERE position = (SELECT last FROM push WHERE serial = ?) RETURNING position",
            [WakeMode.background.number, serial])
        if let position { try WakeTable(db, memory: memory).notifyByWake(device, position, at: now) }
    }

    static let cancelled = ServerMetric.pushes.counter("cancelled")
    private static let expired = ServerMetric.pushes.counter("expired")

    // MARK: Parked pushes

    /// Makes parked pushes due, from the newest to the oldest. Returns the number of pushes and the oldest push. The next call
    /// continues before that push.
    func requeueParked(
        of queue: PushQueue, in shards: ShardSet, before serial: Int64, limit: Int, at now: Timestamp
    ) throws -> (count: Int, oldest: Int64?) {
        // The newest first, because a device needs only one wake.
        var select = try BoundStatement(
            db,
            """
            SELECT serial, device, kind FROM push WHERE lane = ? AND state = \(PushState.parked.rawValue) AND serial < ?
            \(shards.condition(on: "device")) ORDER BY serial DESC LIMIT ?
            """)
        select.bind(queue.number)
        select.bind(serial)
        select.bind(shards)
        select.bind(limit)
        let parked: [(serial: Int64, device: DeviceSerial, kind: PushKind?)] = try select.all { columns in
            (columns.integer(0), DeviceSerial(columns.integer(1)), PushKind(rawValue: Int(columns.integer(2))))
        }
        for push in parked { try requeue(push.serial, of: push.device, push.kind, at: now) }
        return (parked.count, parked.last?.serial)
    }

    private func requeue(_ push: Int64, of device: DeviceSerial, _ kind: PushKind?, at now: Timestamp) throws {
        var verdict = rules.requeue(kind, hasWake: nil)
        if verdict == .needsWake {
            let hasWake = try WakeTable(db, memory: memory).takesUp(push, of: device)
            verdict = rules.requeue(kind, hasWake: hasWake)
        }
        if verdict == .due {
            try writer.requeue(push, at: now)
        } else {
            try writer.cancel(push, until: rules.cancelledUntil(now), at: now)
            db.count(1, of: Self.cancelled)
        }
        // The reach in memory has outdated numbers of pushes.
        memory.pushes[device] = nil
    }

    // MARK: Time

    func bringBack(in shards: ShardSet, at now: Timestamp) throws {
        for table in ["push", "wake"] {
            try db.run(
                """
                UPDATE \(table) SET due_at = :now + max(0, due_at - set_at), set_at = :now
                WHERE set_at > :now AND due_at NOT NULL \(shards.condition(on: "device"))
                """, shards.arguments(with: ["now": now.milliseconds]))
        }
        try db.run(
            """
            UPDATE push SET due_at = :end
            WHERE state = \(PushState.leased.rawValue) AND due_at > :end \(shards.condition(on: "device"))
            """,
            shards.arguments(with: ["end": now.adding(seconds: LeasedPush.leaseSeconds).milliseconds]))
    }

    func sweep(
        in shards: ShardSet, at now: Timestamp, forgetting retention: RetentionTime?, limit: Int
    ) throws -> Bool {
        let expired = try rows(
            "state < 2 AND ends_at <= ?", now.milliseconds, in: shards, order: "ORDER BY ends_at", limit: limit)
        for row in expired {
            let change = rules.timeOver(of: row.kind, in: row.state, expiresAt: row.expiresAt, at: now)
            try apply(change, to: row.serial, of: row.device)
        }
        let forgotten = try retention.map { try forget(in: shards, by: $0, limit: limit) } ?? 0
        let areIdleForgotten = try WakeTable(db, memory: memory).forgetIdle(in: shards, at: now, limit: limit)
        return areIdleForgotten && max(expired.count, forgotten) < limit
    }

    /// Removes finished and parked pushes after their retention. Returns the number of removed pushes.
    private func forget(in shards: ShardSet, by retention: RetentionTime, limit: Int) throws -> Int {
        let cutoff = rules.cutoff(by: retention)
        let old = try rows(
            "state >= 2 AND state_served <= ? AND ends_at <= ?", cutoff.served, cutoff.wall.milliseconds, in: shards,
            limit: limit)
        for row in old {
            if row.state == .parked { db.count(1, of: Self.parkedForgotten) }
            if rules.isFoldedWhenForgotten(row.kind, in: row.state) {
                try notifyByWake(row.serial, row.device, at: retention.now)
            }
            try db.run("DELETE FROM push WHERE serial = ?", [row.serial])
            if var reach = memory.pushes[row.device] {
                reach.kept -= 1
                memory.pushes[row.device] = reach
            }
        }
        return old.count
    }

    private struct EndedRow {
        var serial: Int64
        var device: DeviceSerial
        var kind: PushKind
        var state: PushState
        var expiresAt: Timestamp
    }

    private func rows(
        _ condition: String, _ values: Int64..., in shards: ShardSet, order: String = "", limit: Int
    ) throws -> [EndedRow] {
        var select = try BoundStatement(
            db,
            """
            SELECT serial, device, kind, state, expires_at FROM push
            WHERE \(condition) \(shards.condition(on: "device")) \(order) LIMIT ?
            """)
        for value in values { select.bind(value) }
        select.bind(shards)
        select.bind(limit)
        return try select.all { columns in
            EndedRow(
                serial: columns.integer(0), device: DeviceSerial(columns.integer(1)),
                kind: PushKind(rawValue: Int(columns.integer(2))) ?? .wake,
                state: PushState(rawValue: Int(columns.integer(3))) ?? .cancelled, expiresAt: columns.timestamp(4))
        }
    }
}
