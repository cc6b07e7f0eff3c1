import CarillonCore
import CarillonWire
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Calls of a home to a session over a link.
@Suite(.timeLimit(.minutes(5)))
struct LinkedSessionTests {
    /// The answers to a home, in order.
    private final class ResultCollector: Sendable {
        private let all = Mutex<[Bool]>([])

        var values: [Bool] { all.withLock { $0 } }

        func add(_ value: Bool) { all.withLock { $0.append(value) } }
    }

    private func arrive(_ session: NotingSession, over world: LinkWorld) async throws -> any LiveSession {
        _ = try await world.arrive(1, as: session)
        return try #require(world.home.sessions.last)
    }

    @Test(arguments: RandomSeed.some(0...2))
    func `the calls of a home reach the session in their order`(seed: UInt64) async throws {
        let world = LinkWorld(.random(seed: seed))
        let session = NotingSession()
        let linked = try await arrive(session, over: world)
        let answers = ResultCollector()
        var expected: [NotingSession.Event] = []
        for position in Int64(1)...30 {
            linked.offer(LinkWorld.envelope(position))
            expected.append(.offered(position))
        }
        linked.offerVolatile(LinkWorld.envelope(31)) { answers.add($0) }
        linked.storedMore()
        linked.withdrew(.envelope(7)) { answers.add(true) }
        linked.finished([LinkWorld.id(8), LinkWorld.id(9)])
        linked.providersChanged()
        linked.end(because: .serverStops)
        expected += [.offeredVolatile(31), .storedMore, .withdrew(.envelope(7)), .finished(2)]
        expected += [.providersChanged, .ended(.serverStops)]
        try await eventually { [expected] in session.events == expected }
        try await eventually { answers.values == [true, true] }
    }

    @Test(arguments: [true, false])
    func `a session that its home ended does not arrive at another home`(isEnded: Bool) async throws {
        let session = NotingSession()
        let linked = LinkedSession(
            session, delay: LinkDelay(random: RandomSource { 0 }, longest: 0), limits: .init(), onLost: { _ in },
            onMoved: { _ in { .joined } })
        if isEnded { linked.end(because: .replaced) }
        linked.moved(.gone)
        try await eventually { session.events == (isEnded ? [.ended(.replaced), .gone] : [.arrives]) }
    }

    @Test func `an offer of TTL 0 is answered later, once`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 1))
        let session = NotingSession(answersOffers: false)
        let linked = try await arrive(session, over: world)
        let answers = ResultCollector()
        linked.offerVolatile(LinkWorld.envelope(1)) { answers.add($0) }
        try await eventually { session.events == [.offeredVolatile(1)] }
        #expect(answers.values == [])
        session.answerOffers()
        try await eventually { answers.values == [true] }
        // No answer arrives before the link is cut.
        linked.offerVolatile(LinkWorld.envelope(2)) { answers.add($0) }
        try await eventually { session.events.count == 2 }
        world.link.cut()
        try await eventually { answers.values == [true, false] }
        session.answerOffers()
        linked.offerVolatile(LinkWorld.envelope(3)) { answers.add($0) }
        try await eventually { answers.values == [true, false, false] }
        try await Task.sleep(for: .milliseconds(50))
        #expect(answers.values.count == 3)
        #expect(session.events == [.offeredVolatile(1), .offeredVolatile(2), .ended(.linkLost)])
    }

    @Test func `offers that wait when the link is cut are not delivered, and a withdrawal is done after the end`()
        async throws
    {
        let world = LinkWorld(.fixed(milliseconds: 500))
        let session = NotingSession()
        let linked = try await arrive(session, over: world)
        let (answers, withdrawals) = (ResultCollector(), ResultCollector())
        linked.offer(LinkWorld.envelope(1))
        linked.offerVolatile(LinkWorld.envelope(2)) { answers.add($0) }
        linked.withdrew(.envelope(1)) { withdrawals.add(session.events.contains(.ended(.linkLost))) }
        world.link.cut()
        try await eventually { answers.values == [false] && withdrawals.values == [true] }
        linked.offer(LinkWorld.envelope(3))
        linked.storedMore()
        linked.withdrew(.envelope(2)) { withdrawals.add(true) }
        try await eventually { withdrawals.values == [true, true] }
        #expect(session.events == [.ended(.linkLost), .withdrew(.envelope(1)), .withdrew(.envelope(2))])
    }

    @Test func `a move waits until a session whose link was cut delivers nothing more`() async throws {
        let world = LinkWorld(.fixed(milliseconds: 500))
        let session = NotingSession()
        let linked = try await arrive(session, over: world)
        let moves = ResultCollector()
        linked.moving { moves.add(session.events.last == .moving) }
        world.link.cut()
        linked.moving { moves.add(session.events.last == .moving) }
        try await eventually { moves.values == [true, true] }
        #expect(session.events == [.ended(.linkLost), .moving, .moving])
    }

    @Test(arguments: ["calls", "bytes"])
    func `a session for which too much waits ends and leaves`(limit: String) async throws {
        let domain = try await RouteFixture().domain
        let app = try #require(AppID("com.example.app"))
        _ = try await domain.apps.create(app)
        let (device, credential) = try await domain.devices.register(app: app)
        var limits = LinkedHome.Limits()
        if limit == "calls" { limits.sessionCalls = 3 } else { limits.sessionBytes = 3 * LinkWorld.envelope(1).byteCount }
        let link = LinkedHome(domain.runtime, random: RandomSource { 50_000 }, longestDelay: 50, limits: limits)
        let session = NotingSession()
        let (sessions, name) = (domain.runtime.sessions, DeviceName.id(device.id, credential: credential.hash))
        let arrived = try await link.arrive(
            name, .credential(credential.hash), LinkWorld.load, speaking: 1, as: session)
        #expect(arrived.device?.device.serial == device.serial)
        #expect(sessions.population.sessions == 1)
        for position in Int64(1)...3 { sessions.session(of: device.serial)?.offer(LinkWorld.envelope(position)) }
        try await eventually { session.events == [.offered(1), .offered(2), .offered(3)] }
        let answers = ResultCollector()
        let linked = try #require(sessions.session(of: device.serial))
        for position in Int64(4)...20 { linked.offer(LinkWorld.envelope(position)) }
        linked.offerVolatile(LinkWorld.envelope(21)) { answers.add($0) }
        try await eventually { session.events.last == .ended(.linkLost) && answers.values == [false] }
        try await eventually { sessions.population.sessions == 0 }
        #expect(session.events.count == 4)
    }

    @Test func `a cut link leaves no session at the home, and a newer session stays`() async throws {
        let domain = try await RouteFixture().domain
        let app = try #require(AppID("com.example.app"))
        _ = try await domain.apps.create(app)
        let (device, credential) = try await domain.devices.register(app: app)
        let link = LinkedHome(domain.runtime, random: .system)
        let name = DeviceName.id(device.id, credential: credential.hash)
        let (first, second) = (NotingSession(), NotingSession())
        for session in [first, second] {
            _ = try await link.arrive(name, .credential(credential.hash), LinkWorld.load, speaking: 1, as: session)
        }
        try await eventually { first.events == [.ended(.replaced)] }
        link.leave(first, of: device.serial)
        await link.flush()
        let sessions = domain.runtime.sessions
        #expect(sessions.population.sessions == 1)
        link.cut()
        try await eventually { sessions.population.sessions == 0 && second.events == [.ended(.linkLost)] }
        link.restore()
        let third = NotingSession()
        _ = try await link.arrive(name, .credential(credential.hash), LinkWorld.load, speaking: 1, as: third)
        #expect(sessions.population.sessions == 1 && third.events == [])
        let wrong = try await link.arrive(name, .userAgent(SecretHash(of: [9])), LinkWorld.load, speaking: 1, as: second)
        #expect(wrong.device == nil && sessions.population.sessions == 1)
        link.leave(third, of: name)
        await link.flush()
        #expect(sessions.population.sessions == 0)
    }
}
