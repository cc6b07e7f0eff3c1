import CarillonCore
import CarillonWire
import GRDB

/// Changes wakes after changes of inboxes, registrations and pushes, inside the same transaction, as ``WakeRules`` decides.
struct WakeTable {
    private let db: Database
    private let memory: InboxMemory
    private let rules = WakeRules()
    private let reader: ReachReader
    private let writer: WakeChangeWriter

    init(_ db: Database, memory: InboxMemory) {
        self.db = db
        self.memory = memory
        reader = ReachReader(db, memory: memory)
        writer = WakeChangeWriter(db)
    }

    // MARK: Envelopes

    /// Changes the wake after an envelope was stored. Returns the wake mode of the envelope, which is stored with it.
    func arrived(_ envelope: Envelope, _ request: WakeRequest?) throws -> WakeMode {
        guard let request, rules.concerns(envelope, request) else { return .none }
        let device = envelope.device
        var facts = WakeFacts(reach: try reader.reach(of: device))
        let ruling = try decide(&facts, about: device, of: envelope.app, at: envelope.acceptedAt) {
            rules.arrived(envelope, request, knowing: $0)
        }
        let push = try apply(ruling, to: device)
        if let push, push.kind.hasCopy { try KeptPushTable(db).insert(push.serial, envelope) }
        return ruling.mode
    }

    // MARK: Signs of life of the device

    /// Changes the wake after the device acknowledged an envelope.
    func answered(_ device: DeviceSerial, at now: Timestamp) throws {
        let known = memory.pushes[device]
        // Most devices that are not in the cache have no wake.
        guard try (known == nil ? reader.wake(of: device) : known?.wake) != nil else { return }
        var facts = WakeFacts(reach: try known ?? reader.read(device))
        try apply(decide(&facts, about: device, at: now) { rules.answered(at: now, knowing: $0) }, to: device)
    }

    /// Changes the wake after the device connected or polled.
    func came(_ device: DeviceSerial, at now: Timestamp) throws {
        let known = memory.pushes[device]
        guard let wake = known == nil ? try reader.wake(of: device) : known?.wake,
            let changed = rules.came(wake, at: now)
        else { return }
        try writer.write(.paced(changed), of: device)
        memory.pushes[device]?.wake = changed
    }

    // MARK: Addresses

    /// Changes the wake after a device has another address or status. Due pushes are sent to the new address, or wait until the
    /// device can be reached.
    ///
    /// - Parameter hasOtherAddress: Whether the address is different from the one before.
    func changed(
        _ registration: DeviceRegistration, app: AppSerial, hasOtherAddress: Bool = false, at now: Timestamp
    ) throws {
        let device = registration.device
        let before = memory.pushes[device]
        switch rules.changed(from: before, to: try reader.read(device), hasOtherAddress: hasOtherAddress) {
        case .unchanged: return
        case .unreachable(let ruling):
            try apply(ruling, to: device)
            try PushTable(db, memory: memory).hold(of: device)
        case .reachable(let queue):
            let folded = try PushTable(db, memory: memory).readdress(
                of: device, to: queue, hasOtherAddress: hasOtherAddress, at: now)
            try writer.write(.readdressed(queue), of: device)
            var facts = WakeFacts(reach: try reader.read(device).following(before))
            if let folded { facts.reach.quietBefore = min(facts.reach.quietBefore, folded) }
            try apply(
                decide(&facts, about: device, at: now) {
                    rules.readdressed(to: queue, hasOtherAddress: hasOtherAddress, at: now, knowing: $0)
                }, to: device)
        }
    }

    /// Moves the wake and the pushes of a device whose token belongs to another environment.
    func moved(_ device: DeviceSerial, to queue: PushQueue) throws {
        try writer.write(.moved(queue), of: device)
        try PushTable(db, memory: memory).move(of: device, to: queue)
        // A suspended device has no push queue.
        if memory.pushes[device]?.queue != nil { memory.pushes[device]?.queue = queue }
    }

    // MARK: Pushes

    /// Leases a wake. Returns nil if no push is sent now.
    func lease(_ due: DueWake, at now: Timestamp, until end: Timestamp) throws -> LeasedPush? {
        let device = due.device
        var facts = WakeFacts(reach: try reader.reach(of: device))
        let ruling = try decide(&facts, about: device, at: now) { rules.lease(due, at: now, until: end, knowing: $0) }
        guard let push = try apply(ruling, to: device), let new = ruling.changes.push, let address = due.address
        else { return nil }
        return LeasedPush(
            lease: WorkLease(work: push.serial, fence: Int64(new.leases)), id: push.id, kind: new.kind, device: device,
            queue: new.queue, token: address.token, addressRevision: address.revision, attempt: new.leases,
            isElsewhere: false, expiresAt: new.span.expiresAt, content: .wake)
    }

    /// Changes the wake after a push of the device ended or was parked.
    func pushEnded(_ kind: PushKind, of device: DeviceSerial, _ state: PushState, at now: Timestamp) throws {
        var facts = WakeFacts(reach: try reader.reach(of: device))
        try apply(
            decide(&facts, about: device, at: now) { rules.pushEnded(kind, state, at: now, knowing: $0) }, to: device)
    }

    /// Replaces the alert of a message by a wake.
    func notifyByWake(_ device: DeviceSerial, _ position: Int64, at now: Timestamp) throws {
        let facts = WakeFacts(reach: try reader.reach(of: device))
        try apply(rules.lostAlert(at: position, at: now, knowing: facts), to: device)
    }

    /// Ends the wake after all envelopes that wake the device ended with its user. The caller must remove the device from the
    /// cache before.
    func reasonsEnded(of device: DeviceSerial, isPushCancelled: Bool, at now: Timestamp) throws {
        let row = rules.reasonsEnded(of: try reader.wake(of: device), isPushCancelled: isPushCancelled, at: now)
        if let row { try writer.write(row, of: device) }
    }

    /// Makes a parked push the push of its device's wake. Returns false if another push of the wake is in progress.
    func takesUp(_ push: Int64, of device: DeviceSerial) throws -> Bool {
        try db.run(
            "UPDATE wake SET push = ?, due_at = NULL WHERE device = ? AND push IS NULL", [push, device.rawValue])
        return db.changesCount == 1
    }

    // MARK: Time

    /// Removes wakes of devices that acknowledged their envelopes, if the pace of the next wake does not need them any more.
    /// Returns whether all such wakes are removed.
    func forgetIdle(in shards: ShardSet, at now: Timestamp, limit: Int) throws -> Bool {
        let idle = try Int64.fetchAll(
            db.cachedStatement(
                sql: """
                    DELETE FROM wake WHERE device IN (SELECT device FROM wake
                        WHERE due_at IS NULL AND push IS NULL AND unanswered = 0 AND pushed_at <= ?
                        \(shards.condition(on: "device")) LIMIT ?)
                    RETURNING device
                    """),
            arguments: shards.arguments(with: [rules.idleCutoff(at: now).milliseconds, limit]))
        for device in idle { memory.pushes[DeviceSerial(device)]?.wake = nil }
        return idle.count < limit
    }

    // MARK: Decisions

    /// - Parameter app: The app of the device, if its alert text is needed.
    private func decide(
        _ facts: inout WakeFacts, about device: DeviceSerial, of app: AppSerial? = nil, at now: Timestamp,
        by rule: (WakeFacts) -> WakeVerdict
    ) throws -> WakeRuling {
        while true {
            switch rule(facts) {
            case .needs(let question): try reader.answer(question, about: device, of: app, at: now, into: &facts)
            case .decided(let ruling): return ruling
            }
        }
    }

    /// Writes a ruling. Returns the push that was added to the outbox.
    @discardableResult
    private func apply(_ ruling: WakeRuling, to device: DeviceSerial) throws -> AddedPush? {
        var reach = ruling.reach
        defer { memory.pushes[device] = reach }
        let changes = ruling.changes
        if changes.isFolded { db.count(1, of: Self.folded) }
        var added: AddedPush?
        if let push = changes.push {
            added = try PushTable(db, memory: memory).insert(push, of: device, &reach)
            if push.isShortened { db.count(1, of: Self.shortened) }
        }
        if let row = changes.row { try writer.write(row, of: device, push: added?.serial) }
        return added
    }

    private static let folded = ServerMetric.pushesFolded.counter()
    private static let shortened = ServerMetric.pushesShortened.counter()
}
