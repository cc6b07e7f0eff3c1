import CarillonCore
import CarillonWire

/// Rows of one device, which ``WakeRules`` changes: they return facts and store changes, as a store does.
struct TableWakes {
    private let rules = WakeRules()
    private(set) var queue: PushQueue?
    var hasText = true
    private(set) var waiting: [NaiveWakes.Waiting] = []
    private(set) var wake: NaiveWakes.Wake?
    private(set) var alerts: [NaiveWakes.Alert] = []
    /// Nil if nothing is remembered.
    private var reach: PushReach?

    /// How often each kind of row was written.
    private(set) var written: [String: Int] = [:]

    var isRemembered: Bool { reach != nil }

    mutating func start() { reach = nil }

    // MARK: Facts

    private func read() -> PushReach {
        var reach = PushReach(queue: queue)
        guard queue != nil else { return reach }
        reach.wake = wake.map { wake in
            DeviceWake(
                dueAt: wake.due.map(Timestamp.init(milliseconds:)), isUnderWay: wake.isUnderWay,
                pace: WakePace(
                    unanswered: wake.unanswered, pushedAt: wake.pushed.map(Timestamp.init(milliseconds:))))
        }
        reach.alerts = alerts.count(where: \.isOfMessage)
        reach.triggers = alerts.count - reach.alerts
        reach.lastAlertAt = alerts.filter(\.isOfMessage).compactMap(\.due).max().map(Timestamp.init(milliseconds:))
        return reach
    }

    private func search(_ reach: inout PushReach, at now: Timestamp) -> PushSpan? {
        if let first = reach.firstWaking, first.expiresAt > now, waiting.contains(where: { $0.position == first.first }) {
            return first
        }
        var search = FirstWaking(from: reach.quietBefore, at: now)
        for envelope in waiting where envelope.position > search.beyond {
            if search.saw(envelope.fact, at: envelope.position) { break }
        }
        reach.note(search)
        return search.found
    }

    private func span(from first: PushSpan, at now: Timestamp) -> PushSpan {
        var search = LastWaking(after: first, at: now)
        for envelope in waiting.suffix(LastWaking.looks).reversed() {
            guard search.reached(envelope.position), !search.saw(envelope.fact, at: envelope.position) else { break }
        }
        return search.span
    }

    private mutating func decide(at now: Timestamp, _ rule: (WakeFacts) -> WakeVerdict) -> WakeRuling {
        var facts = WakeFacts(reach: reach ?? read())
        while true {
            switch rule(facts) {
            case .needs(.alertText): facts.hasAlertText = hasText
            case .needs(.waking): facts.isWaking = search(&facts.reach, at: now) != nil
            case .needs(.span):
                facts.span = search(&facts.reach, at: now).map { span(from: $0, at: now) }
                facts.isWaking = facts.span != nil
            case .needs(.inbox): facts.isInboxEmpty = waiting.isEmpty
            case .decided(let ruling):
                write(ruling)
                return ruling
            }
        }
    }

    // MARK: Rows

    private mutating func write(_ ruling: WakeRuling) {
        reach = ruling.reach
        if let push = ruling.changes.push, push.kind != .wake {
            alerts.append(NaiveWakes.Alert(due: push.dueAt.milliseconds, isOfMessage: push.kind == .alert))
        }
        if let row = ruling.changes.row { write(row) }
    }

    private mutating func write(_ row: WakeChanges.Row) {
        written[String("\(row)".prefix { $0 != "(" }), default: 0] += 1
        switch row {
        case .due(let queue, let dueAt, let at):
            wake = wake ?? NaiveWakes.Wake(queue: queue.number, set: 0)
            wake?.queue = queue.number
            wake?.due = dueAt.milliseconds
            wake?.set = at.milliseconds
        case .idle: wake?.due = nil
        case .pushed:
            wake?.due = nil
            wake?.isUnderWay = true
        case .paced(let new): write(new)
        case .ended(let new, let at):
            write(new)
            wake?.isUnderWay = false
            wake?.set = at.milliseconds
        case .endedOutOfReach(let unanswered, let pushedAt):
            wake?.isUnderWay = false
            wake?.unanswered += unanswered
            if let pushedAt { wake?.pushed = pushedAt.milliseconds }
        case .moved(let queue): wake?.queue = queue.number
        case .readdressed(let queue):
            wake?.queue = queue.number
            wake?.unanswered = 0
        case .removed: wake = nil
        }
    }

    private mutating func write(_ new: DeviceWake) {
        wake?.due = new.dueAt?.milliseconds
        wake?.unanswered = new.pace.unanswered
        wake?.pushed = new.pace.pushedAt?.milliseconds
    }

    // MARK: Events

    mutating func append(_ envelope: Envelope, _ request: WakeRequest) {
        var mode = WakeMode.none
        if rules.concerns(envelope, request) {
            mode = decide(at: envelope.acceptedAt) { [rules] in rules.arrived(envelope, request, knowing: $0) }.mode
        }
        waiting.append(
            NaiveWakes.Waiting(position: envelope.position, wake: mode, end: envelope.expiresAt.milliseconds))
    }

    mutating func acknowledge(_ position: Int64, at now: Timestamp) {
        waiting.removeAll { $0.position == position }
        guard isRemembered ? reach?.wake != nil : wake != nil else { return }
        _ = decide(at: now) { [rules] in rules.answered(at: now, knowing: $0) }
    }

    mutating func come(at now: Timestamp) {
        guard let wake = (reach ?? read()).wake, let changed = rules.came(wake, at: now) else { return }
        write(.paced(changed))
        reach?.wake = changed
    }

    /// - Parameter push queue: Nil if the device cannot be reached any more.
    mutating func register(_ queue: PushQueue?, isOther: Bool, at now: Timestamp) {
        self.queue = queue
        let before = reach
        switch rules.changed(from: before, to: read(), hasOtherAddress: isOther) {
        case .unchanged: return
        case .unreachable(let ruling):
            write(ruling)
            for place in alerts.indices { alerts[place].due = nil }
        case .reachable(let queue):
            for place in alerts.indices where alerts[place].due == nil { alerts[place].due = now.milliseconds }
            write(.readdressed(queue))
            reach = read().following(before)
            _ = decide(at: now) { [rules] in
                rules.readdressed(to: queue, hasOtherAddress: isOther, at: now, knowing: $0)
            }
        }
    }

    mutating func lease(at now: Timestamp) -> [Int64]? {
        guard let wake, let due = wake.due, due <= now.milliseconds, let queue = PushQueue(number: wake.queue) else {
            return nil
        }
        let dueWake = DueWake(
            device: Sample.device, queue: queue, dueAt: Timestamp(milliseconds: due),
            setAt: Timestamp(milliseconds: wake.set), address: self.queue == nil ? nil : WakeSample.address)
        let end = now.adding(seconds: LeasedPush.leaseSeconds)
        let ruling = decide(at: now) { [rules] in rules.lease(dueWake, at: now, until: end, knowing: $0) }
        return ruling.changes.push.map { [$0.span.first, $0.span.last] }
    }

    mutating func end(_ state: PushState, at now: Timestamp) {
        _ = decide(at: now) { [rules] in rules.pushEnded(.wake, state, at: now, knowing: $0) }
    }

    mutating func endAlert(_ place: Int, at now: Timestamp) {
        let kind = alerts[place].isOfMessage ? PushKind.alert : .trigger
        alerts.remove(at: place)
        // A value that is not remembered is read later, without the push.
        guard isRemembered else { return }
        _ = decide(at: now) { [rules] in rules.pushEnded(kind, .handed, at: now, knowing: $0) }
    }

    mutating func loseAlert(_ position: Int64, at now: Timestamp) {
        for place in waiting.indices where waiting[place].position == position { waiting[place].wake = .background }
        write(rules.lostAlert(at: position, at: now, knowing: WakeFacts(reach: reach ?? read())))
    }
}

extension NaiveWakes.Waiting {
    fileprivate var fact: WaitingEnvelope { WaitingEnvelope(wake: wake, expiresAt: Timestamp(milliseconds: end)) }
}
