import CarillonCore
import CarillonSQLite
import CarillonWire
import Logging
import StoreConformance
import Synchronization
import TestSupport

/// A publisher and an inbox over a store, as a server has them, with a clock and timers that the test moves.
final class DeliveryWorld: Sendable {
    /// What stays when a process is killed.
    let fixture: StoreFixture
    let clock: ManualClock
    let store: MortalStore
    let sessions = LiveSessions()
    let writer: InboxWriter
    let inbox: Inbox
    let publisher: Publisher
    let timers = ManualTimers()

    init(
        _ fixture: StoreFixture, clock: ManualClock = ManualClock(), seed: UInt64 = 1,
        limits: CommitQueue<InboxWriter.Waiter>.Limits = .init(),
        allowances: (inout Allowances.Settings) -> Void = { _ in }
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
            limits: limits)
        inbox = Inbox(
            store: store, writer: writer, sessions: sessions,
            positions: PositionSource(epoch: try await fixture.store.claimEpoch()), time: time, random: random)
        var settings = Allowances.Settings()
        allowances(&settings)
        publisher = Publisher(
            sealer: TokenSealer(keys: [TokenKey(id: 1, bytes: Array(repeating: 7, count: 32))], random: random),
            directory: ChannelDirectory(store: fixture.store), inbox: inbox,
            allowances: Allowances(settings: settings, ticks: TickSource { clock.now.milliseconds * 1_000_000 }),
            audience: "https://push.example.com", time: time)
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

    func outcome(_ id: MessageID) async throws -> Outcome? { try await inbox.record(of: id)?.settlement?.outcome }
}

final class ManualClock: Sendable {
    private let milliseconds = Atomic(StoreFixture.start.milliseconds)
    var now: Timestamp { Timestamp(milliseconds: milliseconds.load(ordering: .relaxed)) }
    func advance(seconds: Int64) { milliseconds.wrappingAdd(seconds * 1000, ordering: .relaxed) }
}

/// Timers that run when the test says so.
final class ManualTimers: Sendable {
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    var scheduler: Scheduler {
        Scheduler { [self] _, work in waiting.withLock { $0.append(work) } }
    }

    func fire() {
        let due = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
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

    func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int {
        try await store.waitingCount(device: device, at: now)
    }

    func waitingInAll() async throws -> InboxUsage.Waiting { try await store.waitingInAll() }

    func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord? {
        try await store.record(of: id, at: now)
    }

    func sweep(at now: Timestamp, limit: Int) async throws -> Swept { try await store.sweep(at: now, limit: limit) }
}

/// A connection without a wire: an ``EnvelopeWindow``, and what it gave.
final class WindowedSession: LiveSession {
    private struct State {
        var window: EnvelopeWindow
        var given: [Envelope] = []
        var load: EnvelopeWindow.Load?
        var isOpen = true
    }

    let device: DeviceSerial
    private let inbox: Inbox
    private let clock: ManualClock
    private let state: Mutex<State>

    init(device: DeviceSerial, inbox: Inbox, clock: ManualClock, limits: EnvelopeWindow.Limits = .init()) {
        self.device = device
        self.inbox = inbox
        self.clock = clock
        var window = EnvelopeWindow(limits: limits)
        let load = window.began()
        state = Mutex(State(window: window, load: load))
    }

    /// What came since the last time.
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
        let read = try await inbox.waiting(device: device, after: load.after, limit: load.limit, bytes: load.bytes)
        guard case .page(let page) = read else { return end(because: .deviceGone) }
        state.withLock { state in
            guard state.isOpen else { return }
            let loaded = state.window.loaded(page.envelopes, isComplete: page.isComplete, at: clock.now)
            state.given += loaded.give
            state.load = loaded.load
        }
    }

    func settled(_ ids: [MessageID]) {
        change { state in
            for id in ids {
                if let load = state.window.settled(id) { state.load = load }
            }
        }
    }

    /// The connection is gone.
    func disconnect() {
        let lost = state.withLock { state in
            state.isOpen = false
            return state.window.ended()
        }
        for id in lost { inbox.settle(id, device: device, .dropped, code: nil) }
    }

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in if state.isOpen { body(&state) } }
    }

    func offer(_ envelope: Envelope) {
        change { state in
            switch state.window.offered(envelope, isVolatile: false, at: clock.now) {
            case .give: state.given.append(envelope)
            case .later(let load?): state.load = load
            case .later(nil): break
            }
        }
    }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        let wasGiven = state.withLock { state in
            guard state.isOpen, state.window.offered(envelope, isVolatile: true, at: clock.now) == .give else {
                return false
            }
            state.given.append(envelope)
            return true
        }
        answer(wasGiven)
    }

    func storedMore() {
        change { state in if let load = state.window.storedMore(at: clock.now) { state.load = load } }
    }

    func withdrew(_ withdrawal: EnvelopeWindow.Withdrawal, done: @escaping @Sendable () -> Void) {
        change { state in if let load = state.window.withdrew(withdrawal) { state.load = load } }
        done()
    }

    func end(because reason: SessionEnd) { disconnect() }
}
