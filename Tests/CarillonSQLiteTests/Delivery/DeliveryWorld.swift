import CarillonCore
import CarillonSQLite
import CarillonWire
import Logging
import StoreConformance
import Synchronization
import TestStores
import TestSupport

/// A publisher and an inbox over a store, as a server has them, with a clock and timers that the test moves.
final class DeliveryWorld: Sendable {
    /// The state that survives the kill of a process.
    let fixture: StoreFixture
    let clock: ManualClock
    let store: MortalStore
    let sessions = LiveSessions()
    let writer: InboxWriter
    let inbox: Inbox
    let home: HomeRuntime
    let publisher: Publisher
    let timers = ManualTimers()

    init(
        _ fixture: StoreFixture, clock: ManualClock = ManualClock(), seed: UInt64 = 1,
        limits: CommitQueue<InboxWriter.Waiter>.Limits = .init(),
        rateLimits: (inout RateLimits.Settings) -> Void = { _ in }
    ) async throws {
        self.fixture = fixture
        self.clock = clock
        store = MortalStore(fixture.sqlite)
        let generator = Mutex(SeededRandom(seed: seed))
        let random = RandomSource { generator.withLock { $0.next() } }
        let time = TimeSource { clock.now }
        writer = InboxWriter(
            store: store, sessions: sessions, scheduler: timers.scheduler,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            limits: limits, now: { [timers] in timers.now })
        inbox = Inbox(
            store: store, writer: writer, sessions: sessions,
            positions: PositionSource(epoch: try await fixture.store.claimEpoch()), time: time, random: random)
        home = HomeRuntime(inbox: inbox, sessions: sessions, store: fixture.store)
        var settings = RateLimits.Settings()
        rateLimits(&settings)
        publisher = Publisher(
            sealer: TokenSealer(keys: [TokenKey(id: 1, bytes: Array(repeating: 7, count: 32))], random: random),
            directory: ChannelDirectory(store: fixture.store), home: home,
            rateLimits: RateLimits(settings: settings, ticks: TickSource { clock.now.milliseconds * 1_000_000 }),
            addresses: PublicURLs("https://push.example.com"), time: time)
    }

    static func make(_ limits: InboxLimits = .init()) async throws -> DeliveryWorld {
        try await DeliveryWorld(try await StoreFixture(.memory, limits))
    }

    func request(
        ttl: Int64 = 60, topic: String? = nil, key: String? = nil, body: String = "hello"
    ) -> PublishRequest {
        PublishRequest(
            body: Array(body.utf8), coding: ContentCoding(.identity), ttl: ttl, topic: topic, idempotencyKey: key)
    }

    func publish(_ request: PublishRequest) async throws -> PublishReceipt {
        try await publisher.publish(request, to: fixture.first)
    }

    func outcome(_ id: MessageID) async throws -> Outcome? { try await inbox.record(of: id)?.finalOutcome?.outcome }
}

final class ManualClock: Sendable {
    private let milliseconds = Atomic(StoreFixture.start.milliseconds)
    var now: Timestamp { Timestamp(milliseconds: milliseconds.load(ordering: .relaxed)) }
    func advance(seconds: Int64) { milliseconds.wrappingAdd(seconds * 1000, ordering: .relaxed) }
}

/// Timers that run when the test starts them, and a clock that shows the time of the last ones.
final class ManualTimers: Sendable {
    private struct State {
        var now = ContinuousClock.now
        var waiting: [(due: ContinuousClock.Instant, work: @Sendable () -> Void)] = []
    }

    private let state = Mutex(State())

    var now: ContinuousClock.Instant { state.withLock { $0.now } }

    var scheduler: Scheduler {
        Scheduler { [self] delay, work in state.withLock { $0.waiting.append(($0.now + delay, work)) } }
    }

    /// Lets the time pass until all timers that were set have elapsed.
    func fire() {
        let due = state.withLock { state in
            state.now = max(state.now, state.waiting.map(\.due).max() ?? state.now)
            defer { state.waiting = [] }
            return state.waiting.map(\.work)
        }
        for work in due { work() }
    }
}

/// The real store, of a process that can be killed: after that it writes nothing.
final class MortalStore: InboxStore {
    private let store: SQLiteStore
    private let isDead = Atomic(false)

    init(_ store: SQLiteStore) { self.store = store }

    func kill() { isDead.store(true, ordering: .sequentiallyConsistent) }

    func commit(_ operations: [InboxOperation]) async throws -> [InboxResult] {
        guard !isDead.load(ordering: .sequentiallyConsistent) else { throw StoreFault(.unavailable, "killed") }
        return try await store.commit(operations)
    }

    func waiting(
        device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp
    ) async throws -> [Envelope]? {
        try await store.waiting(device: device, after: position, limit: limit, bytes: bytes, at: now)
    }

    func arrival(of name: DeviceName, _ load: PageRequest, at now: Timestamp) async throws -> Arrival? {
        try await store.arrival(of: name, load, at: now)
    }

    func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int {
        try await store.waitingCount(device: device, at: now)
    }

    func waitingInAll() async throws -> InboxUsage.Waiting { try await store.waitingInAll() }

    func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord? {
        try await store.record(of: id, at: now)
    }

    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Swept {
        try await store.sweep(at: now, forgetting: retention, limit: limit)
    }
}

/// A connection without a network: a ``DeliveryMachine``, and its deliveries.
final class WindowedSession: LiveSession {
    private struct State {
        var machine: DeliveryMachine
        var given: [Envelope] = []
        var load: PageRequest?
        var isOpen = true
    }

    let device: DeviceSerial
    private let inbox: Inbox
    private let clock: ManualClock
    private let state: Mutex<State>

    init(device: DeviceSerial, inbox: Inbox, clock: ManualClock, limits: DeliveryMachine.Limits = .init()) {
        self.device = device
        self.inbox = inbox
        self.clock = clock
        var machine = DeliveryMachine(limits: limits)
        let load = machine.began()
        state = Mutex(State(machine: machine, load: load))
    }

    /// The deliveries since the last call.
    func takeGiven() -> [Envelope] {
        state.withLock { state in
            defer { state.given = [] }
            return state.given
        }
    }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Makes the load that is due, if one is.
    func load() async throws {
        guard let load = state.withLock({ $0.load.take() }) else { return }
        let read = try await inbox.waiting(device: device, load)
        change { $0.loaded(read, at: $1) }
    }

    /// The connection has ended.
    func disconnect() {
        change { machine, _ in machine.disconnected() }
        state.withLock { $0.isOpen = false }
    }

    /// Returns whether an offer of TTL 0 was delivered.
    @discardableResult
    private func change(_ event: (inout DeliveryMachine, Timestamp) -> [DeliveryMachine.Action]) -> Bool {
        let actions = state.withLock { state -> [DeliveryMachine.Action] in
            guard state.isOpen else { return [] }
            let actions = event(&state.machine, clock.now)
            for action in actions {
                switch action {
                case .deliver(let envelope): state.given.append(envelope)
                case .load(let load): state.load = load
                case .end: state.isOpen = false
                case .answerOffer, .caughtUp, .finish: break
                }
            }
            return actions
        }
        for case .finish(let id, let outcome) in actions { inbox.finish(id, device: device, outcome, code: nil) }
        return actions.contains(.answerOffer(wasAccepted: true))
    }

    func finished(_ ids: [MessageID]) { change { machine, _ in ids.flatMap { machine.finished($0) } } }

    func offer(_ envelope: Envelope) { change { $0.offered(envelope, isVolatile: false, at: $1) } }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        answer(change { $0.offered(envelope, isVolatile: true, at: $1) })
    }

    func storedMore() { change { $0.storedMore(at: $1) } }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        change { machine, _ in machine.withdrew(withdrawal) }
        done()
    }

    func end(because reason: SessionEnd) { disconnect() }
}
