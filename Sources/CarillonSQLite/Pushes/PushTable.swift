import CarillonCore
import CarillonWire
import GRDB

/// A push that was inserted, its number and its name.
struct AddedPush {
    var serial: Int64
    var id: Bytes16
    var kind: PushKind
}

/// The outbox inside a transaction: pushes enter, and end. How they are leased is in `PushTable+Leasing.swift`.
struct PushTable {
    let db: Database
    let memory: InboxMemory
    private let retentionSeconds: Int64

    init(_ db: Database, memory: InboxMemory, settings: StoreSettings = StoreSettings()) {
        self.db = db
        self.memory = memory
        retentionSeconds = settings.inbox.outcomeRetentionSeconds
    }

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
        insert.bind(push.lane.number)
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
        // To the end, as only then it is done.
        try insert.forEachRow { columns in
            inserted = AddedPush(serial: columns.integer(0), id: try columns.bytes16(1), kind: push.kind)
            return true
        }
        guard let inserted else { throw StoreFault(.unavailable, "a push was not inserted") }
        reach.kept += 1
        if reach.kept > PushLimits.keptPerDevice + PushLimits.keptPerDevice / 4 { try forgetOldest(of: device, &reach) }
        return inserted
    }

    /// What is over goes before what is parked.
    private func forgetOldest(of device: DeviceSerial, _ reach: inout PushReach) throws {
        let forgotten = try Int64.fetchAll(
            db.cachedStatement(
                sql: """
                    DELETE FROM push WHERE serial IN (SELECT serial FROM push
                        WHERE device = ? AND state BETWEEN \(PushState.handed.rawValue) AND \(PushState.parked.rawValue)
                        ORDER BY state = \(PushState.parked.rawValue), serial LIMIT ?)
                    RETURNING state
                    """), arguments: [device.rawValue, reach.kept - PushLimits.keptPerDevice])
        reach.kept -= forgotten.count
        db.count(forgotten.count { $0 == PushState.parked.rawValue }, of: Self.parkedForgotten)
    }

    private static let parkedForgotten = ServerMetric.parkedPushesForgotten.counter()

    // MARK: Ending

    /// Nil when the lease is not in force.
    func end(_ end: PushEnd) throws -> PushFact? {
        var select = try BoundStatement(
            db, "SELECT kind FROM push WHERE serial = ? AND fence = ? AND state = \(PushState.leased.rawValue)")
        select.bind(end.lease.work)
        select.bind(end.lease.fence)
        guard let kind = try select.first({ PushKind(rawValue: Int($0.integer(0))) }) ?? nil else { return nil }
        do {
            return try self.end(end, kind)
        } catch is StoreFault {
            // What cannot be read holds up no other push.
            try finish(end.lease.work, end.device, kind, .parked, Self.unreadable, at: end.at)
            return .parked(kind)
        }
    }

    static let unreadable = "unreadable"

    private func end(_ end: PushEnd, _ kind: PushKind) throws -> PushFact? {
        if try goesToAnotherAddress(end) { return .retried(kind) }
        switch end.verdict {
        case .handed:
            try finish(end.lease.work, end.device, kind, .handed, nil, at: end.at)
            if end.isElsewhere { try keepEnvironment(end) }
            return .handed(kind)
        case .again(let dueAt, let isSpent, let reason):
            try retry(end, dueAt, isSpent: isSpent, reason: reason)
            return .retried(kind)
        case .elsewhere:
            guard let other = end.lane.other else { return nil }
            try db.run(
                """
                UPDATE push SET state = \(PushState.scheduled.rawValue), lane = ?, due_at = ?, set_at = ?, is_elsewhere = 1
                WHERE serial = ?
                """, [other.number, end.at.milliseconds, end.at.milliseconds, end.lease.work])
            return .retried(kind)
        case .parked(let reason, let isOfAddress):
            try finish(end.lease.work, end.device, kind, .parked, reason, awaitsAddress: isOfAddress, at: end.at)
            return .parked(kind)
        case .tokenDead(let reason, let since):
            return try tokenDied(end, kind, reason, since)
        }
    }

    /// What was said of an address that the device has no more says nothing of the one that it has: the push begins anew with that.
    private func goesToAnotherAddress(_ end: PushEnd) throws -> Bool {
        switch end.verdict {
        case .handed, .parked(_, isOfAddress: false): return false
        case .again, .elsewhere, .tokenDead, .parked(_, isOfAddress: true): break
        }
        let current = try RegistrationTable(db, memory: memory).registration(of: end.device)
        guard let current, current.addressRevision != end.addressRevision, current.status == .registered,
            let address = current.profile.address
        else { return false }
        let lane = PushLane(app: end.lane.app, environment: address.environment)
        try db.run(
            """
            UPDATE push SET state = \(PushState.scheduled.rawValue), lane = ?, due_at = ?, set_at = ?, is_elsewhere = 0, attempts = 0
            WHERE serial = ?
            """, [lane.number, end.at.milliseconds, end.at.milliseconds, end.lease.work])
        return true
    }

    private func retry(_ end: PushEnd, _ dueAt: Timestamp, isSpent: Bool, reason: String) throws {
        try db.run(
            """
            UPDATE push SET state = \(PushState.scheduled.rawValue), due_at = ?, set_at = ?, reason = ?,
                attempts = attempts - ? WHERE serial = ?
            """, [dueAt.milliseconds, end.at.milliseconds, reason, isSpent ? 0 : 1, end.lease.work])
    }

    /// The device is suspended, unless it has another token since, or confirmed it since; then the push is tried again.
    private func tokenDied(
        _ end: PushEnd, _ kind: PushKind, _ reason: String, _ since: Timestamp?
    ) throws -> PushFact? {
        let registrations = RegistrationTable(db, memory: memory)
        guard let current = try registrations.registration(of: end.device) else {
            try finish(end.lease.work, end.device, kind, .rejected, reason, awaitsAddress: true, at: end.at)
            return .rejected(kind, deviceIsSuspended: false)
        }
        let suspended = RegistrationRules.suspend(
            current.confirmed(memory.pushes.lastConfirmed(end.device)), because: .tokenDead, ofRevision: end.addressRevision,
            knownSince: since, at: end.at)
        if suspended == nil, current.status == .registered, current.profile.address != nil {
            let isStale = current.addressRevision == end.addressRevision
            let dueAt = isStale ? end.at.adding(seconds: PushRules.staleSeconds) : end.at
            try retry(end, dueAt, isSpent: true, reason: reason)
            return .retried(kind)
        }
        try finish(end.lease.work, end.device, kind, .rejected, reason, awaitsAddress: true, at: end.at)
        if let suspended { try registrations.store(suspended, app: end.lane.app, at: end.at) }
        return .rejected(kind, deviceIsSuspended: suspended != nil)
    }

    /// A token that the other environment took belongs there.
    private func keepEnvironment(_ end: PushEnd) throws {
        try db.run(
            """
            UPDATE device_profile SET environment = ?1,
                said_environment = nullif(coalesce(said_environment, environment), ?1)
            WHERE device = ?2 AND revision = ?3 AND token NOT NULL AND environment <> ?1
            """,
            [end.lane.environment.rawValue, end.device.rawValue, end.addressRevision])
        guard db.changesCount > 0 else { return }
        try WakeTable(db, memory: memory).moved(end.device, to: end.lane)
    }

    /// What it was for is done, or never will be.
    ///
    /// - Parameter awaitsAddress: Whether another address of the device corrects it. An alert is then kept as long as its
    ///   message, and sent to the next address.
    func finish(
        _ serial: Int64, _ device: DeviceSerial, _ kind: PushKind, _ state: PushState, _ reason: String?,
        awaitsAddress: Bool = false, at now: Timestamp
    ) throws {
        let awaitsAddress = awaitsAddress && kind.isOfOneEnvelope
        var update = try BoundStatement(
            db,
            """
            UPDATE push SET state = ?1, state_at = ?2, state_served = (SELECT seconds FROM served), due_at = NULL,
                ends_at = iif(?4, max(?3, expires_at), ?3), awaits_address = ?4, reason = ?5
            WHERE serial = ?6
            """)
        update.bind(state.rawValue)
        update.bind(now.milliseconds)
        update.bind(now.adding(seconds: retentionSeconds).milliseconds)
        update.bind(awaitsAddress ? 1 : 0)
        update.bind(reason)
        update.bind(serial)
        try update.run()
        if kind == .unconditional, state != .parked { try KeptPushTable(db).remove(serial) }
        switch state {
        case .cancelled: db.count(1, of: Self.cancelled)
        case .expired: db.count(1, of: Self.expired)
        default: break
        }
        try WakeTable(db, memory: memory).pushEnded(kind, of: device, state, at: now)
    }

    /// The message of an alert that is not shown waits still: a wake tells of it, when the device can be reached.
    func tellByWake(_ serial: Int64, _ device: DeviceSerial, at now: Timestamp) throws {
        let position = try Int64.first(
            db, "UPDATE envelope SET wake = ? WHERE position = (SELECT last FROM push WHERE serial = ?) RETURNING position",
            [WakeMode.background.number, serial])
        if let position { try WakeTable(db, memory: memory).tellByWake(device, position, at: now) }
    }

    /// The device is gone, and nothing of it is sent any more.
    func cancelAll(of device: DeviceSerial, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE push SET state = \(PushState.cancelled.rawValue), state_at = ?,
                state_served = (SELECT seconds FROM served), due_at = NULL, ends_at = ?
            WHERE device = ? AND state IN (\(PushState.scheduled.rawValue), \(PushState.parked.rawValue))
            """, [now.milliseconds, now.adding(seconds: retentionSeconds).milliseconds, device.rawValue])
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

    /// Cancels pushes for envelopes that ended with the device's user, and the wake if nothing is left that wakes the device.
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
        let wakes = try Int64.fetchAll(
            db.cachedStatement(
                sql:
                    "SELECT serial FROM push WHERE device = ? AND kind = \(PushKind.wake.rawValue) AND \(Self.isCancellable)"
            ),
            arguments: [device.rawValue])
        try cancel(wakes, of: device, at: now)
        for wake in wakes {
            try db.run("UPDATE wake SET push = NULL WHERE device = ? AND push = ?", [device.rawValue, wake])
        }
        try db.run("UPDATE wake SET due_at = NULL WHERE device = ?", [device.rawValue])
        try db.run(
            "DELETE FROM wake WHERE device = ? AND push IS NULL AND unanswered = 0 AND pushed_at IS NULL", [device.rawValue])
    }

    private func cancel(_ pushes: [Int64], of device: DeviceSerial, at now: Timestamp) throws {
        for push in pushes {
            try db.run(
                """
                UPDATE push SET state = \(PushState.cancelled.rawValue), state_at = ?,
                    state_served = (SELECT seconds FROM served), due_at = NULL, ends_at = ?
                WHERE serial = ?
                """, [now.milliseconds, now.adding(seconds: retentionSeconds).milliseconds, push])
            try KeptPushTable(db).remove(push)
        }
        db.count(pushes.count, of: Self.cancelled)
        // It counts pushes otherwise.
        memory.pushes[device] = nil
    }

    static let cancelled = ServerMetric.pushes.counter("cancelled")
    private static let expired = ServerMetric.pushes.counter("expired")

    /// Answers how many there were, and the oldest of them; those before it are left to be done.
    func requeueParked(
        of lane: PushLane, before serial: Int64, limit: Int, at now: Timestamp
    ) throws -> (count: Int, oldest: Int64?) {
        // The newest first: one wake of a device is enough.
        var select = try BoundStatement(
            db,
            """
            SELECT serial, device, kind FROM push WHERE lane = ? AND state = \(PushState.parked.rawValue) AND serial < ?
            ORDER BY serial DESC LIMIT ?
            """)
        select.bind(lane.number)
        select.bind(serial)
        select.bind(limit)
        var parked: [(serial: Int64, device: DeviceSerial, kind: PushKind?)] = []
        try select.forEachRow { columns in
            parked.append(
                (columns.integer(0), DeviceSerial(columns.integer(1)), PushKind(rawValue: Int(columns.integer(2)))))
            return true
        }
        for push in parked {
            if try push.kind?.isOfOneEnvelope == true || WakeTable(db, memory: memory).takesUp(push.serial, of: push.device)
            {
                try db.run(
                    """
                    UPDATE push SET state = \(PushState.scheduled.rawValue), state_at = :now, due_at = :now, set_at = :now,
                        ends_at = expires_at, reason = NULL, awaits_address = 0
                    WHERE serial = :serial
                    """, ["now": now.milliseconds, "serial": push.serial])
            } else {
                try db.run(
                    """
                    UPDATE push SET state = \(PushState.cancelled.rawValue), state_at = ?,
                        state_served = (SELECT seconds FROM served), ends_at = ? WHERE serial = ?
                    """,
                    [now.milliseconds, now.adding(seconds: retentionSeconds).milliseconds, push.serial])
                db.count(1, of: Self.cancelled)
            }
            // What is remembered of it counts its pushes otherwise.
            memory.pushes[push.device] = nil
        }
        return (parked.count, parked.last?.serial)
    }

    // MARK: Time

    func bringBack(at now: Timestamp) throws {
        for table in ["push", "wake"] {
            try db.run(
                """
                UPDATE \(table) SET due_at = :now + max(0, due_at - set_at), set_at = :now
                WHERE set_at > :now AND due_at NOT NULL
                """, ["now": now.milliseconds])
        }
        try db.run(
            "UPDATE push SET due_at = :end WHERE state = \(PushState.leased.rawValue) AND due_at > :end",
            ["end": now.adding(seconds: LeasedPush.leaseSeconds).milliseconds])
    }

    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) throws -> Bool {
        let expired = try rows("state < 2 AND ends_at <= ? ORDER BY ends_at LIMIT ?", now.milliseconds, Int64(limit))
        for row in expired {
            if row.state == PushState.scheduled.rawValue {
                try finish(row.serial, row.device, PushKind(rawValue: row.kind) ?? .wake, .expired, nil, at: now)
            } else {
                // Its answer comes soon, or its lease ends.
                try db.run(
                    "UPDATE push SET ends_at = ? WHERE serial = ?",
                    [now.adding(seconds: LeasedPush.leaseSeconds).milliseconds, row.serial])
            }
        }
        let forgotten = try retention.map { try forget(by: $0, limit: limit) } ?? 0
        let areIdleForgotten = try WakeTable(db, memory: memory).forgetIdle(at: now, limit: limit)
        return areIdleForgotten && max(expired.count, forgotten) < limit
    }

    /// What is over or parked, and was kept long enough. Answers how many there were.
    private func forget(by retention: RetentionTime, limit: Int) throws -> Int {
        let old = try rows(
            "state >= 2 AND state_served <= ? AND ends_at <= ? LIMIT ?",
            retention.cutoff(afterSeconds: retentionSeconds).served, retention.now.milliseconds, Int64(limit))
        for row in old {
            if row.state == PushState.parked.rawValue {
                // Nobody looked, and nobody will.
                db.count(1, of: Self.parkedForgotten)
                if row.kind != PushKind.wake.rawValue { try tellByWake(row.serial, row.device, at: retention.now) }
            }
            try db.run("DELETE FROM push WHERE serial = ?", [row.serial])
            if var reach = memory.pushes[row.device] {
                reach.kept -= 1
                memory.pushes[row.device] = reach
            }
        }
        return old.count
    }

    private func rows(
        _ condition: String, _ values: Int64...
    ) throws -> [(serial: Int64, device: DeviceSerial, kind: Int, state: Int)] {
        var select = try BoundStatement(db, "SELECT serial, device, kind, state FROM push WHERE \(condition)")
        for value in values { select.bind(value) }
        var rows: [(serial: Int64, device: DeviceSerial, kind: Int, state: Int)] = []
        try select.forEachRow { columns in
            rows.append(
                (
                    columns.integer(0), DeviceSerial(columns.integer(1)), Int(columns.integer(2)), Int(columns.integer(3))
                ))
            return true
        }
        return rows
    }
}
