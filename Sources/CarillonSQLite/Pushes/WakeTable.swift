import CarillonCore
import CarillonWire
import GRDB

/// Decides and writes, with what happens to inboxes and registrations, that devices are to be pushed to.
struct WakeTable {
    private let db: Database
    private let memory: InboxMemory

    init(_ db: Database, memory: InboxMemory) {
        self.db = db
        self.memory = memory
    }

    // MARK: What happened

    /// An envelope begins to wait. Answers how its device is told, which is how it is written.
    func arrived(_ envelope: Envelope, _ wish: WakeWish?) throws -> WakeMode {
        guard let wish, wish.mode != .none, envelope.behaviour.mayWake else { return .none }
        var reach = try reach(of: envelope.device)
        defer { memory.pushes[envelope.device] = reach }
        reach.quietBefore = min(reach.quietBefore, envelope.position)
        // When it can be reached, one wake tells of all that waits.
        guard let lane = reach.lane else { return .background }
        let hasFired = envelope.kind.number == .fired
        if wish.mode == .alert, try !wish.needsAlertText || hasAlertText(envelope.app) {
            let kind: PushKind = hasFired ? wish.isUnconditional ? .unconditional : .trigger : .alert
            if hasFired ? reach.triggers < PushLimits.triggersPerDevice : reach.alerts < PushLimits.alertsPerDevice {
                try queueAlert(for: envelope, wish, kind, in: lane, &reach)
                return .alert
            }
            db.count(1, of: Self.folded)
        }
        let dueAt = (reach.wake?.pace ?? WakePace()).dueAt(wish.dueAt)
        if reach.wake == nil || reach.wake?.isUnderWay == false && reach.wake?.dueAt.map({ dueAt < $0 }) ?? true {
            try put(envelope.device, lane, dueAt, at: envelope.acceptedAt, &reach)
        }
        return .background
    }

    /// The device answered for an envelope: it is awake, and what it was to be woken for may be gone.
    func answered(_ device: DeviceSerial, at now: Timestamp) throws {
        let known = memory.pushes[device]
        // Of a device that is not known here a wake is the exception.
        guard var wake = known == nil ? try wake(of: device) : known?.wake else { return }
        var reach = try known ?? read(device)
        reach.answeredAt = now
        defer { memory.pushes[device] = reach }
        let isDone = try wake.dueAt != nil && WaitingWakes(db, index: memory.index).isEmpty(device)
        guard wake.pace.unanswered > 0 || isDone else { return }
        wake.pace.answered()
        if isDone { wake.dueAt = nil }
        if wake.dueAt == nil, !wake.isUnderWay, wake.pace.isForgettable(at: now) {
            try db.run("DELETE FROM wake WHERE device = ?", [device.rawValue])
            reach.wake = nil
        } else {
            try write(device, wake)
            reach.wake = wake
        }
    }

    /// The device was there, though it may have had nothing to answer for: what was rare goes on as usual.
    func came(_ device: DeviceSerial, at now: Timestamp) throws {
        let known = memory.pushes[device]
        guard var wake = known == nil ? try wake(of: device) : known?.wake, wake.pace.isSlow else { return }
        wake.pace.answered()
        wake.dueAt = wake.dueAt.map { min($0, wake.pace.dueAt(now)) }
        try write(device, wake)
        memory.pushes[device]?.wake = wake
    }

    /// What was to be told by an alert of its own is told by a wake.
    func tellByWake(_ device: DeviceSerial, _ position: Int64, at now: Timestamp) throws {
        var reach = try reach(of: device)
        defer { memory.pushes[device] = reach }
        reach.quietBefore = min(reach.quietBefore, position)
        guard let lane = reach.lane, reach.wake?.dueAt == nil, reach.wake?.isUnderWay != true else { return }
        try put(device, lane, (reach.wake?.pace ?? WakePace()).dueAt(now), at: now, &reach)
    }

    /// A device has another address, or another status. What is due goes there, or waits until it can be reached.
    ///
    /// - Parameter hasOtherAddress: Than before this change.
    func changed(
        _ registration: DeviceRegistration, app: AppSerial, hasOtherAddress: Bool = false, at now: Timestamp
    ) throws {
        let device = registration.device
        let before = memory.pushes[device]
        var reach = try read(device)
        reach.follow(before)
        guard before != reach || before == nil || hasOtherAddress else { return }
        defer { memory.pushes[device] = reach }
        guard let lane = reach.lane else {
            try db.run("UPDATE wake SET due_at = NULL WHERE device = ?", [device.rawValue])
            // Alerts wait in the outbox until the device can be reached, or their time is over.
            try db.run(
                "UPDATE push SET due_at = NULL WHERE device = ? AND state = \(PushState.scheduled.rawValue)",
                [device.rawValue])
            return
        }
        let folded = try PushTable(db, memory: memory).readdressAlerts(
            of: device, to: lane, hasOtherAddress: hasOtherAddress, at: now)
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
        // Whoever registers is awake.
        try db.run("UPDATE wake SET lane = ?, unanswered = 0 WHERE device = ?", [lane.number, device.rawValue])
        reach = try read(device)
        reach.follow(before)
        if let folded { reach.quietBefore = min(reach.quietBefore, folded) }
        if hasOtherAddress, let wake = reach.wake, let dueAt = wake.dueAt,
            dueAt > wake.pace.dueAt(now.adding(seconds: WakeWish.presenceSeconds))
        {
            try put(device, lane, wake.pace.dueAt(now), at: now, &reach)
        }
        guard reach.wake?.dueAt == nil, reach.wake?.isUnderWay != true,
            try WaitingWakes(db, index: memory.index).areAny(of: device, &reach, at: now)
        else { return }
        try put(device, lane, (reach.wake?.pace ?? WakePace()).dueAt(now), at: now, &reach)
    }

    // MARK: Wakes

    private func put(
        _ device: DeviceSerial, _ lane: PushLane, _ dueAt: Timestamp, at now: Timestamp, _ reach: inout PushMemory.Reach
    ) throws {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO wake (device, lane, due_at, set_at) VALUES (?, ?, ?, ?)
            ON CONFLICT (device) DO UPDATE SET lane = excluded.lane, due_at = excluded.due_at, set_at = excluded.set_at
            """)
        insert.bind(device.rawValue)
        insert.bind(lane.number)
        insert.bind(dueAt.milliseconds)
        insert.bind(now.milliseconds)
        try insert.run()
        reach.wake = reach.wake ?? .init()
        reach.wake?.dueAt = dueAt
    }

    /// Its time and pace.
    private func write(_ device: DeviceSerial, _ wake: PushMemory.Wake) throws {
        try db.run(
            "UPDATE wake SET due_at = ?, unanswered = ?, pushed_at = ? WHERE device = ?",
            [wake.dueAt?.milliseconds, wake.pace.unanswered, wake.pace.pushedAt?.milliseconds, device.rawValue])
    }

    // MARK: Alerts

    private static let folded = ServerMetric.pushesFolded.counter()
    private static let shortened = ServerMetric.pushesShortened.counter()

    func hasAlertText(_ app: AppSerial) throws -> Bool {
        if let known = memory.pushes.hasAlertText(app) { return known }
        let isThere = try Int.first(db, "SELECT 1 FROM app_alert WHERE app = ?", [app.rawValue]) != nil
        memory.pushes.noteAlertText(of: app, isThere)
        return isThere
    }

    private func queueAlert(
        for envelope: Envelope, _ wish: WakeWish, _ kind: PushKind, in lane: PushLane, _ reach: inout PushMemory.Reach
    ) throws {
        var dueAt = wish.dueAt
        // What a user waits for is not paced.
        if kind == .alert, let last = reach.lastAlertAt, last.adding(seconds: PushLimits.secondsBetweenAlerts) > dueAt,
            last < dueAt.adding(seconds: PushLimits.secondsBetweenAlerts * Int64(PushLimits.alertsPerDevice))
        {
            dueAt = last.adding(seconds: PushLimits.secondsBetweenAlerts)
        }
        let span = WaitingWakes.Span(
            first: envelope.position, last: envelope.position, expiresAt: envelope.expiresAt)
        let push = try PushTable(db, memory: memory).insert(
            kind, of: envelope.device, in: lane, for: span, .scheduled, isShortened: wish.isShortened, dueAt: dueAt,
            at: envelope.acceptedAt, &reach)
        if wish.isShortened { db.count(1, of: Self.shortened) }
        if kind == .unconditional { try KeptPushTable(db).insert(push.serial, envelope) }
        if kind == .alert {
            reach.alerts += 1
            reach.lastAlertAt = dueAt
        } else {
            reach.triggers += 1
        }
    }

    // MARK: Reach

    func reach(of device: DeviceSerial) throws -> PushMemory.Reach {
        if let known = memory.pushes[device] { return known }
        let reach = try read(device)
        memory.pushes[device] = reach
        return reach
    }

    private func read(_ device: DeviceSerial) throws -> PushMemory.Reach {
        var reach = PushMemory.Reach()
        reach.lane = try lane(of: device)
        guard reach.lane != nil else { return reach }
        reach.wake = try wake(of: device)
        var pushes = try BoundStatement(
            db,
            """
            SELECT count(*), coalesce(sum(is_due AND is_alert), 0), coalesce(sum(is_due AND NOT is_alert), 0),
                max(iif(is_due AND is_alert, due_at, NULL))
            FROM (SELECT due_at, kind = \(PushKind.alert.rawValue) AS is_alert,
                    kind <> \(PushKind.wake.rawValue) AND state <= \(PushState.leased.rawValue) AS is_due
                FROM push WHERE device = ?)
            """)
        pushes.bind(device.rawValue)
        try pushes.forEachRow { columns in
            reach.kept = Int(columns.integer(0))
            reach.alerts = Int(columns.integer(1))
            reach.triggers = Int(columns.integer(2))
            reach.lastAlertAt = columns.integerIfAny(3).map(Timestamp.init(milliseconds:))
            return false
        }
        return reach
    }

    private func wake(of device: DeviceSerial) throws -> PushMemory.Wake? {
        var select = try BoundStatement(db, "SELECT due_at, push, unanswered, pushed_at FROM wake WHERE device = ?")
        select.bind(device.rawValue)
        return try select.first { columns in
            PushMemory.Wake(
                dueAt: columns.integerIfAny(0).map(Timestamp.init(milliseconds:)),
                isUnderWay: columns.integerIfAny(1) != nil,
                pace: WakePace(
                    unanswered: Int(columns.integer(2)),
                    pushedAt: columns.integerIfAny(3).map(Timestamp.init(milliseconds:))))
        }
    }

    private func lane(of device: DeviceSerial) throws -> PushLane? {
        var select = try BoundStatement(
            db,
            "SELECT app, environment FROM device_profile WHERE device = ? AND token NOT NULL AND reason IS NULL")
        select.bind(device.rawValue)
        return try select.first { columns in
            columns.text(1).flatMap(PushEnvironment.init).map {
                PushLane(app: AppSerial(columns.integer(0)), environment: $0)
            }
        } ?? nil
    }
}

extension WakeTable {
    /// A push of the device is over, or parked.
    func pushEnded(_ kind: PushKind, of device: DeviceSerial, _ state: PushState, at now: Timestamp) throws {
        var reach = try reach(of: device)
        defer { memory.pushes[device] = reach }
        switch kind {
        case .alert: reach.alerts = max(0, reach.alerts - 1)
        case .trigger, .unconditional: reach.triggers = max(0, reach.triggers - 1)
        case .wake: try wakeEnded(of: device, state, at: now, &reach)
        }
    }

    private func wakeEnded(
        of device: DeviceSerial, _ state: PushState, at now: Timestamp, _ reach: inout PushMemory.Reach
    ) throws {
        guard reach.lane != nil else {
            // It cannot be reached any more; its pace goes on.
            try db.run(
                """
                UPDATE wake SET push = NULL, unanswered = unanswered + :handed, pushed_at = iif(:handed, :now, pushed_at)
                WHERE device = :device
                """, ["handed": state == .handed ? 1 : 0, "now": now.milliseconds, "device": device.rawValue])
            return
        }
        var wake = reach.wake ?? .init()
        wake.isUnderWay = false
        if state == .handed { wake.pace.handed(at: now) }
        let isWaiting = try WaitingWakes(db, index: memory.index).areAny(of: device, &reach, at: now)
        // What is parked would be parked again: it waits for somebody to look, or for the day to pass.
        let wanted = state == .parked ? now.adding(seconds: 86_400) : now
        wake.dueAt = isWaiting ? wake.pace.dueAt(wanted) : nil
        if wake.dueAt == nil, wake.pace.isForgettable(at: now) {
            try db.run("DELETE FROM wake WHERE device = ?", [device.rawValue])
            reach.wake = nil
            return
        }
        var update = try BoundStatement(
            db, "UPDATE wake SET push = NULL, due_at = ?, set_at = ?, unanswered = ?, pushed_at = ? WHERE device = ?")
        update.bind(wake.dueAt?.milliseconds)
        update.bind(now.milliseconds)
        update.bind(wake.pace.unanswered)
        update.bind(wake.pace.pushedAt?.milliseconds)
        update.bind(device.rawValue)
        try update.run()
        reach.wake = wake
    }

    /// A parked wake is to be tried again. Answers false when another is under way.
    func takesUp(_ push: Int64, of device: DeviceSerial) throws -> Bool {
        try db.run(
            "UPDATE wake SET push = ?, due_at = NULL WHERE device = ? AND push IS NULL", [push, device.rawValue])
        return db.changesCount == 1
    }

    /// Its token turned out to be of another environment.
    func moved(_ device: DeviceSerial, to lane: PushLane) throws {
        try db.run("UPDATE wake SET lane = ? WHERE device = ?", [lane.number, device.rawValue])
        try db.run(
            "UPDATE push SET lane = ? WHERE device = ? AND state = \(PushState.scheduled.rawValue)",
            [lane.number, device.rawValue])
        memory.pushes[device]?.lane = lane
    }
}
