import CarillonWire
import Logging
import Synchronization
import TestStores
import Testing

@testable import CarillonCore

/// Calls of a home to a session that calls the home back, and calls from several threads.
@Suite(.timeLimit(.minutes(5)))
struct SessionOrderTests {
    private let sessions = LiveSessions()
    private let device = Sample.device
    private let home: HomeRuntime

    init() async throws {
        let writer = InboxWriter(
            store: ScriptedInboxStore(), sessions: sessions, scheduler: Scheduler { _, _ in },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let inbox = Inbox(
            store: ScriptedInboxStore(), writer: writer, sessions: sessions, positions: PositionSource(epoch: 1),
            time: TimeSource { Sample.now }, random: Sample.random)
        home = HomeRuntime(inbox: inbox, sessions: sessions, store: try await stores.open())
    }

    /// A session that does something in each call of the home.
    private final class CallingSession: LiveSession {
        enum Call: Hashable, Sendable {
            case offer, offerVolatile, storedMore, withdrew, finished, providersChanged, end, moving, moved
        }

        private struct State {
            var calls: [Call] = []
            var positions: [Int64] = []
            /// Whether a call is being made.
            var isCalled = false
            var overlaps = 0
        }

        private let state = Mutex(State())
        private let work: @Sendable (CallingSession, Call) -> Void

        init(_ work: @escaping @Sendable (CallingSession, Call) -> Void) { self.work = work }

        var calls: [Call] { state.withLock { $0.calls } }
        var positions: [Int64] { state.withLock { $0.positions } }
        /// The number of calls that began during another call.
        var overlaps: Int { state.withLock { $0.overlaps } }

        private func called(_ call: Call, _ position: Int64? = nil) {
            state.withLock { state in
                if state.isCalled { state.overlaps += 1 }
                state.isCalled = true
                state.calls.append(call)
                if let position { state.positions.append(position) }
            }
            work(self, call)
            state.withLock { $0.isCalled = false }
        }

        func offer(_ envelope: Envelope) { called(.offer, envelope.position) }

        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
            called(.offerVolatile, envelope.position)
            answer(true)
        }

        func storedMore() { called(.storedMore) }

        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
            called(.withdrew)
            done()
        }

        func finished(_ ids: [MessageID]) { called(.finished) }

        func providersChanged() { called(.providersChanged) }

        func end(because reason: SessionEnd) { called(.end) }

        func moving(done: @escaping @Sendable () -> Void) {
            called(.moving)
            done()
        }

        func moved(_ end: MoveEnd) { called(.moved) }
    }

    private static func deliver(_ mode: DeliveryMode, by home: HomeRuntime, to device: DeviceSerial) {
        home.deliver(to: device, mode, rules: AppendRules()) { id in
            Envelope(
                id: id, device: device, app: AppSerial(1), origin: .channel(ChannelSerial(1), Sample.channelID),
                kind: .message(.init(body: [1], coding: nil)), acceptedAt: Sample.now,
                expiresAt: Sample.now.adding(seconds: 60))
        } then: { _, _ in
        }
    }

    /// Returns the position of the envelope.
    private static func offer(by home: HomeRuntime, to device: DeviceSerial) -> Int64 {
        let position = Mutex<Int64>(0)
        home.deliver(to: device, .keptAndOffered, rules: AppendRules()) { id in
            position.withLock { $0 = id.position }
            return Sample.envelope(id.position)
        } then: { _, _ in
        }
        return position.withLock { $0 }
    }

    /// Makes each call of a home to a session.
    private static func callAll(_ home: HomeRuntime, _ device: DeviceSerial) {
        for mode in [DeliveryMode.keptAndOffered, .now, .kept] { deliver(mode, by: home, to: device) }
        home.withdraw(.envelope(1), from: device) {}
        home.expired(1, of: device)
        home.providersChanged(for: device)
        home.sessions.call(.finished([Sample.id(1)]), ofDevice: device)
        home.sessions.moving(Shard(of: device)) {}
        home.sessions.moved(Shard(of: device), isReleased: false)
        home.end([device], because: .serverStops)
    }

    @Test func `a session can call its home in each call`() throws {
        let home = home
        let seen = Mutex<Set<CallingSession.Call>>([])
        let session = CallingSession { [device] session, call in
            let isFirst = seen.withLock { $0.insert(call).inserted }
            if isFirst { Self.callAll(home, device) }
            home.finish(EnvelopeAnswer(Sample.id(1), .acknowledged), of: device)
            #expect(home.isConnected(device))
            home.sessions.join(session, device: device)
        }
        sessions.join(session, device: device)
        Self.callAll(home, device)
        #expect(Set(session.calls).count == 9, "each call was made")
        // The calls of the test, and those during the first call of each kind.
        #expect(session.calls.count == 10 * 10)
        #expect(session.positions == session.positions.sorted())
        #expect(session.overlaps == 0)
    }

    @Test func `a session that leaves in a call is called no more, and its calls end`() {
        let home = home
        let session = CallingSession { [device] session, _ in home.leave(session, of: device) }
        sessions.join(session, device: device)
        Self.callAll(home, device)
        #expect(session.calls == [.offer])
        #expect(sessions.population == (0, 0) && sessions.devices(in: Shard(of: device)).isEmpty)
        let next = RecordingSession()
        sessions.join(next, device: device)
        Self.deliver(.kept, by: home, to: device)
        #expect(next.events == [.storedMore])
    }

    @Test func `calls that wait are made also if the device moves away`() {
        let home = home
        let done = Mutex(0)
        let session = CallingSession { [device] session, call in
            guard call == .offer else { return }
            home.sessions.moved(Shard(of: device), isReleased: true)
            home.withdraw(.envelope(1), from: device) { done.withLock { $0 += 1 } }
            home.sessions.join(session, device: device)
            home.withdraw(.envelope(1), from: device) { done.withLock { $0 += 10 } }
        }
        sessions.join(session, device: device)
        Self.deliver(.keptAndOffered, by: home, to: device)
        #expect(session.calls == [.offer, .moved, .withdrew])
        #expect(done.withLock { $0 } == 11, "the first withdrawal found no session")
        #expect(sessions.population == (1, 0))
    }

    @Test func `envelopes that come from many threads are offered in the order of their positions`() async {
        let session = CallingSession { _, _ in }
        sessions.join(session, device: device)
        let count = 500
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { [home, device] in
                    for number in 0..<count {
                        Self.deliver(.now, by: home, to: device)
                        if number % 10 == 0 {
                            await withCheckedContinuation { continuation in
                                home.withdraw(.envelope(1), from: device) { continuation.resume() }
                            }
                        }
                    }
                }
            }
        }
        #expect(session.positions == session.positions.sorted() && session.overlaps == 0)
        #expect(session.positions.count == 8 * count)
        #expect(session.calls.filter { $0 == .withdrew }.count == 8 * count / 10)
    }

    @Test func `a withdrawal is done after the offers that were made before`() async {
        let session = CallingSession { _, _ in }
        sessions.join(session, device: device)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { [home, device] in
                    for _ in 0..<200 {
                        let position = Self.offer(by: home, to: device)
                        await withCheckedContinuation { continuation in
                            home.withdraw(.envelope(position), from: device) { continuation.resume() }
                        }
                        #expect(session.positions.contains(position))
                    }
                }
            }
        }
    }
}
