import NIOCore

/// The state machine that decides which connections are open, and which push uses which connection.
///
/// Pushes wait in one queue, the oldest first. Returned pushes are added at the head of the queue. A push is assigned to the
/// connection with a free stream that has the fewest pushes under way.
///
/// A connection is `opening` until the peer's settings arrive, then `open`, `draining` when it accepts no more pushes, and
/// removed when it has ended. The machine opens
///
/// - one connection, when a push waits and there is no connection;
/// - connections up to the minimum, after ``warmUp()`` or the first push;
/// - one more connection, up to the maximum, when pushes have waited for ``Options/growsAfter`` because every open connection
///   is full (in streams or in its window) and none is opening. A connection that is not proven counts as opening: APNs
///   allows it a single stream, so a full connection does not show a high load.
///
/// After a failure only one connection is opened at a time, by the ``APNsReconnectSchedule``. A connection that ended before
/// a response counts as a failure, so that a host that accepts and closes connections is not called in a loop. A connection
/// that had a response is replaced at once, within the limit of the ``ReplacementRateLimit``.
///
/// A push that an old connection rejected because of its age waits separately for a newer connection. If there is no
/// newer connection, one is opened.
struct PoolMachine {
    struct Options: Sendable {
        var minimum = 1
        var maximum = 8
        /// The time after which an unused connection above the minimum is retired.
        var idleLimit: Duration = .seconds(300)
        var growsAfter: Duration = .milliseconds(50)
        /// How many lost connections are replaced at once, and how many per second after that.
        var replacedAtOnce = 16.0
        var replacedPerSecond = 1.0
    }

    enum Action: Equatable {
        case open(ConnectionID)
        case retire(ConnectionID)
    }

    enum Phase: Equatable {
        case opening
        case open
        case draining
    }

    struct Connection {
        let id: ConnectionID
        var phase = Phase.opening
        var free = 0
        var inFlight = 0
        var isProven = false
        var hasAnswered = false
        var isRetired = false
        /// Whether the loss of the connection was counted in the allowance.
        var isCounted = false
        var idleSince: Moment?
    }

    let options: Options
    private(set) var connections: [Connection] = []
    private(set) var schedule = APNsReconnectSchedule()
    private var replacementLimit: ReplacementRateLimit
    private var queue = CircularBuffer<PushID>()
    /// Pushes that need a connection with a number higher than `after`.
    private var selective: [(push: PushID, after: Int)] = []
    /// Abandoned pushes in the queue. They are skipped when they reach its head.
    private var givenUp: Set<PushID> = []
    private var actions: [Action] = []
    private var nextConnection = 0
    private var isWarm = false
    private var isShutDown = false
    private var fullSince: Moment?

    init(options: Options) {
        self.options = options
        replacementLimit = ReplacementRateLimit(atOnce: options.replacedAtOnce, perSecond: options.replacedPerSecond)
    }

    var queued: Int { queueLength - givenUp.count + selective.count }
    var queueLength: Int { queue.count }
    /// The highest number of a connection.
    var newestConnection: Int { nextConnection }

    /// Whether connections are lost so often that the next one must wait.
    func isPaced(_ now: Moment) -> Bool { !replacementLimit.allows(now) }

    /// Whether a connection is needed that the schedule does not allow yet.
    var isWaitingToConnect: Bool { isWarm && !isShutDown && connections.count < options.minimum }

    mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    // MARK: Pushes

    mutating func enqueued(_ push: PushID) { queue.append(push) }

    /// Pushes were returned from a connection, in the order in which they were sent.
    mutating func returned(_ pushes: [PushID]) {
        for push in pushes.reversed() { queue.prepend(push) }
    }

    /// Adds a push that needs a connection with a higher number.
    mutating func enqueued(_ push: PushID, after number: Int) { selective.append((push, number)) }

    /// Empties the queue, because no waiting push can be sent.
    mutating func takeQueue() -> [PushID] {
        defer {
            queue.removeAll()
            selective = []
            givenUp = []
        }
        return selective.map(\.push) + queue.filter { !givenUp.contains($0) }
    }

    /// Removes an abandoned push from the queue.
    mutating func removed(_ push: PushID) {
        if let index = selective.firstIndex(where: { $0.push == push }) {
            selective.remove(at: index)
            return
        }
        givenUp.insert(push)
        let waiting = queueLength - givenUp.count
        guard waiting == 0 || (givenUp.count > 1024 && givenUp.count > waiting) else { return }
        queue.removeAll { givenUp.contains($0) }
        givenUp = []
    }

    /// Returns the next push and its connection; nil if no push waits or no stream is free.
    mutating func nextAssignment() -> (push: PushID, connection: ConnectionID)? {
        if !selective.isEmpty, let next = nextSelective() { return next }
        guard queueLength > givenUp.count, let best = leastBusy() else { return nil }
        var push = queue.removeFirst()
        while !givenUp.isEmpty, givenUp.remove(push) != nil { push = queue.removeFirst() }
        return (push, connections[best].id)
    }

    private mutating func nextSelective() -> (push: PushID, connection: ConnectionID)? {
        for (index, waiting) in selective.enumerated() {
            guard let best = leastBusy(after: waiting.after) else { continue }
            selective.remove(at: index)
            return (waiting.push, connections[best].id)
        }
        return nil
    }

    /// Reserves a stream on the connection with the fewest pushes under way.
    private mutating func leastBusy(after number: Int = 0) -> Int? {
        var best: Int?
        for index in connections.indices where connections[index].free > 0 && connections[index].phase == .open {
            guard connections[index].id.number > number else { continue }
            if let known = best, connections[known].inFlight <= connections[index].inFlight { continue }
            best = index
        }
        guard let best else { return nil }
        connections[best].free -= 1
        connections[best].inFlight += 1
        return best
    }

    /// All possible pushes were assigned. Records since when pushes wait because all connections are full.
    mutating func noteFullness(_ now: Moment) {
        let open = connections.filter { $0.phase == .open }
        let isFull = queued > 0 && !open.isEmpty && open.allSatisfy { $0.free == 0 && $0.isProven }
        if !isFull { fullSince = nil } else if fullSince == nil { fullSince = now }
    }

    /// Sets the number of free streams of a connection after a push was sent on it.
    mutating func assigned(_ id: ConnectionID, free: Int) {
        change(id) { $0.free = free }
    }

    // MARK: Connections

    mutating func warmUp() { isWarm = true }

    mutating func opened(_ id: ConnectionID) {
        change(id) { $0.phase = .open }
    }

    /// Sets the present state of a connection.
    mutating func changed(
        _ id: ConnectionID, free: Int, inFlight: Int, isProven: Bool, hasAnswered: Bool, now: Moment
    ) {
        if hasAnswered, connections.contains(where: { $0.id == id && !$0.hasAnswered }) { schedule.succeeded() }
        change(id) {
            $0.free = free
            $0.inFlight = inFlight
            $0.isProven = isProven
            $0.hasAnswered = $0.hasAnswered || hasAnswered
            if inFlight > 0 { $0.idleSince = nil } else if $0.idleSince == nil { $0.idleSince = now }
        }
    }

    /// - Parameter isRetired: Whether the pool requested it.
    mutating func draining(_ id: ConnectionID, _ now: Moment, isRetired: Bool = true) {
        change(id) {
            $0.phase = .draining
            $0.isRetired = isRetired
            $0.free = 0
        }
        countIfLost(id, now)
    }

    /// Counts a connection that had a response and was lost in the allowance, as soon as it may be replaced.
    private mutating func countIfLost(_ id: ConnectionID, _ now: Moment) {
        guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
        guard connections[index].hasAnswered, !connections[index].isRetired, !connections[index].isCounted else { return }
        connections[index].isCounted = true
        replacementLimit.lost(now)
    }

    /// A connection ended, or could not be opened.
    /// - Parameter isRetired: Whether the pool requested it.
    mutating func ended(_ id: ConnectionID, _ now: Moment, isRetired: Bool = false, random: Double) {
        if !isRetired { countIfLost(id, now) }
        guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
        let connection = connections.remove(at: index)
        // A connection that had a response, or that the pool retired, is replaced at once.
        guard !isRetired, !connection.isRetired else { return }
        if connection.phase == .opening || !connection.hasAnswered {
            schedule.failed(now, random: random)
        }
    }

    /// Replaces all connections, because their push credentials are no longer valid.
    mutating func credentialsChanged() {
        for connection in connections where connection.phase != .draining { actions.append(.retire(connection.id)) }
        schedule.succeeded()
    }

    mutating func shutDown() {
        isShutDown = true
        for connection in connections { actions.append(.retire(connection.id)) }
    }

    /// Decides which connections to open and to retire, after time has passed or the state has changed.
    mutating func timePassed(_ now: Moment) {
        guard !isShutDown else { return }
        if queued > 0 { isWarm = true }
        let open = connections.filter { $0.phase == .open }
        let opening = connections.count { $0.phase == .opening }
        let active = open.count + opening
        if schedule.allows(now), replacementLimit.allows(now) {
            var wanted = isWarm ? max(options.minimum, queued == 0 ? 0 : 1) : 0
            if let fullSince, opening == 0, now - fullSince >= options.growsAfter {
                wanted = max(wanted, active + 1)
                self.fullSince = nil
            }
            if lacksNewer { wanted = max(wanted, active + 1) }
            wanted = min(wanted, options.maximum)
            let atOnce = schedule.failures > 0 ? 1 - opening : wanted - active
            for _ in 0..<max(0, min(wanted - active, atOnce)) { openNext() }
        }
        retireIdle(now, open)
    }

    private mutating func retireIdle(_ now: Moment, _ open: [Connection]) {
        var spare = open.count - options.minimum
        for connection in open where spare > 0 {
            guard let idleSince = connection.idleSince, now - idleSince >= options.idleLimit else { continue }
            actions.append(.retire(connection.id))
            draining(connection.id, now)
            spare -= 1
        }
    }

    /// Whether a push waits for a connection that is newer than all present ones.
    private var lacksNewer: Bool {
        selective.contains { waiting in
            !connections.contains { $0.phase != .draining && $0.id.number > waiting.after }
        }
    }

    private mutating func openNext() {
        nextConnection += 1
        let id = ConnectionID(number: nextConnection)
        connections.append(Connection(id: id))
        actions.append(.open(id))
    }

    private mutating func change(_ id: ConnectionID, _ change: (inout Connection) -> Void) {
        guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
        change(&connections[index])
    }
}
