import CarillonCore
import CarillonWire

/// Wakes of one device, the simple way: all waiting envelopes are searched each time.
struct NaiveWakes {
    struct Waiting: Equatable {
        var position: Int64
        var wake: WakeMode
        var end: Int64
    }

    /// All times are milliseconds.
    struct Wake: Equatable {
        var queue: Int64
        var due: Int64?
        var set: Int64
        var isUnderWay = false
        var unanswered = 0
        var pushed: Int64?
    }

    struct Alert: Equatable {
        var due: Int64?
        var isOfMessage: Bool
    }

    var queue: Int64?
    var hasText = true
    var waiting: [Waiting] = []
    var wake: Wake?
    var alerts: [Alert] = []
    private var answered: Int64?
    /// The due time of the last known alert of a message.
    private var lastAlert: Int64?

    static let second: Int64 = 1000

    /// The server starts again: when the device answered last is in no table.
    mutating func start() {
        answered = nil
        readAlerts()
    }

    private mutating func readAlerts() { lastAlert = alerts.filter(\.isOfMessage).compactMap(\.due).max() }

    // MARK: Pace

    /// When a wake may go out that is wanted at a moment.
    private func earliest(_ wanted: Int64) -> Int64 {
        guard let wake, let pushed = wake.pushed else { return wanted }
        let minutes: Int64
        switch wake.unanswered {
        case 0, 1, 2: minutes = 20
        case 3: minutes = 60
        case 4: minutes = 240
        default: minutes = 1440
        }
        let pause = minutes * 60 * Self.second
        return max(wanted, min(pushed, wanted) + pause)
    }

    private mutating func set(_ due: Int64, at now: Int64, in queue: Int64) {
        if wake == nil { wake = Wake(queue: queue, set: now) }
        wake?.queue = queue
        wake?.due = due
        wake?.set = now
    }

    private mutating func forgetIfIdle(at now: Int64) {
        guard let wake, wake.due == nil, !wake.isUnderWay, wake.unanswered == 0, earliest(now) <= now else { return }
        self.wake = nil
    }

    private func wakes(at now: Int64) -> Bool { waiting.contains { $0.wake == .background && $0.end > now } }

    // MARK: Events

    mutating func append(_ position: Int64, _ mode: WakeMode, isFired: Bool, wanted: Int64, end: Int64, at now: Int64) {
        waiting.append(Waiting(position: position, wake: .none, end: end))
        guard mode != .none else { return }
        waiting[waiting.count - 1].wake = .background
        guard let queue else { return }
        let room = isFired ? PushLimits.triggersPerDevice : PushLimits.alertsPerDevice
        if mode == .alert, isFired || hasText, alerts.count(where: { $0.isOfMessage != isFired }) < room {
            waiting[waiting.count - 1].wake = .alert
            var due = wanted
            if !isFired, let lastAlert, lastAlert < wanted + 20 * Self.second { due = max(due, lastAlert + Self.second) }
            if !isFired { lastAlert = due }
            alerts.append(Alert(due: due, isOfMessage: !isFired))
            return
        }
        if wake?.isUnderWay == true { return }
        let due = earliest(wanted)
        if let there = wake?.due, there <= due { return }
        set(due, at: now, in: queue)
    }

    mutating func acknowledge(_ position: Int64, at now: Int64) {
        waiting.removeAll { $0.position == position }
        guard wake != nil, queue != nil else { return }
        answered = now
        let isDone = wake?.due != nil && waiting.isEmpty
        guard isDone || wake?.unanswered != 0 else { return }
        wake?.unanswered = 0
        if isDone { wake?.due = nil }
        forgetIfIdle(at: now)
    }

    mutating func come(at now: Int64) {
        guard queue != nil, let unanswered = wake?.unanswered, unanswered > 2 else { return }
        wake?.unanswered = 0
        guard let due = wake?.due else { return }
        let soonest = min(due, earliest(now))
        wake?.due = soonest
    }

    mutating func leave() {
        queue = nil
        wake?.due = nil
        for place in alerts.indices { alerts[place].due = nil }
    }

    mutating func register(_ other: Int64, isOther: Bool, at now: Int64) {
        queue = other
        wake?.queue = other
        wake?.unanswered = 0
        for place in alerts.indices where alerts[place].due == nil { alerts[place].due = now }
        readAlerts()
        if let due = wake?.due {
            if isOther, due > earliest(now + 10 * Self.second) { set(earliest(now), at: now, in: other) }
        } else if wake?.isUnderWay != true, wakes(at: now) {
            set(earliest(now), at: now, in: other)
        }
    }

    /// Returns the first and the last position that a push is for; nil if no push is sent.
    mutating func lease(at now: Int64) -> [Int64]? {
        guard let due = wake?.due, let set = wake?.set, due <= now else { return nil }
        if due - set >= 10 * Self.second, let answered, answered <= now, answered + 10 * Self.second > now {
            wake?.due = answered + 10 * Self.second
            wake?.set = answered
            return nil
        }
        wake?.due = nil
        let waking = waiting.filter { $0.wake == .background && $0.end > now }.map(\.position)
        guard queue != nil, let first = waking.first, let last = waking.last else { return nil }
        wake?.isUnderWay = true
        return [first, last]
    }

    /// The push of a wake has ended.
    mutating func end(_ state: PushState, at now: Int64) {
        wake?.isUnderWay = false
        if state == .handed {
            wake?.unanswered += 1
            wake?.pushed = now
        }
        guard queue != nil else { return }
        wake?.set = now
        wake?.due = nil
        if wakes(at: now) {
            let due = earliest(state == .parked ? now + 86_400 * Self.second : now)
            wake?.due = due
        }
        forgetIfIdle(at: now)
    }

    /// - Parameter isRemembered: Whether the pushes of the device were read since the start of the server.
    mutating func endAlert(_ place: Int, isRemembered: Bool) {
        alerts.remove(at: place)
        if !isRemembered { readAlerts() }
    }

    mutating func loseAlert(_ position: Int64, at now: Int64) {
        for place in waiting.indices where waiting[place].position == position { waiting[place].wake = .background }
        guard let queue, wake?.isUnderWay != true, wake?.due == nil else { return }
        set(earliest(now), at: now, in: queue)
    }
}
