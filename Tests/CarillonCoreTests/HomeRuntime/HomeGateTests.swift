import CarillonWire
import Logging
import TestStores
import Testing

@testable import CarillonCore

/// Calls of a home for a shard that moves.
@Suite(.timeLimit(.minutes(5)))
struct HomeGateTests {
    private let world: GatedHomes
    private let gate: ShardGate
    private var shard: Shard { world.shard }
    private var device: DeviceSerial { world.device.serial }

    init() async throws { try await self.init(longestWait: .seconds(30)) }

    private init(longestWait: Duration) async throws {
        let world = try await GatedHomes(longestWait: longestWait)
        gate = try #require(world.first.gate)
        self.world = world
    }

    private func close() async { #expect(await gate.close(shard, atMost: .zero)) }

    private func isFailed(_ result: InboxResult) -> Bool {
        if case .failed = result { true } else { false }
    }

    @Test(arguments: [true, false])
    func `a message to a closed shard waits for the end of the move`(isGiven: Bool) async throws {
        // No call waits too long.
        let world = try await GatedHomes(waits: Scheduler { _, _ in })
        let gate = try #require(world.first.gate)
        #expect(await gate.close(shard, atMost: .zero))
        async let sent = world.deliver(at: world.first)
        async let another = world.first.deliver(to: device, .kept) { [world] id in world.envelope(id) }
        for _ in 0..<100 { await Task.yield() }
        #expect(try await world.waiting() == [])
        if isGiven { try world.give() } else { gate.reopen(shard) }
        let (first, second) = (await sent.result, await another)
        if isGiven {
            #expect(isFailed(first) && isFailed(second))
        } else {
            #expect(first == .stored(replaced: nil) && second == .stored(replaced: nil))
        }
        #expect(await world.deliver(at: world.runtimes[isGiven ? 1 : 0]).result == .stored(replaced: nil))
    }

    @Test func `a message to a closed shard fails if too many wait`() async throws {
        let world = try await GatedHomes(mostWaiting: 0)
        let gate = try #require(world.first.gate)
        #expect(await gate.close(shard, atMost: .zero))
        #expect(isFailed(await world.deliver(at: world.first).result))
    }

    @Test func `a closed shard delivers no message, and its messages are not withdrawn`() async throws {
        let (id, delivered) = await world.deliver(at: world.first)
        #expect(delivered == .stored(replaced: nil))
        await close()
        let wasAccepted = await world.first.sendWithoutStoring(to: device) { id in Sample.envelope(id.position) }
        #expect(!wasAccepted)
        await #expect(throws: StoreFault.self) { try await world.first.cancel(id, of: device) }
        await #expect(throws: StoreFault.self) { try await world.first.takeBack(id, from: device) }
        await #expect(throws: StoreFault.self) {
            try await world.first.finish([EnvelopeAnswer(id, .acknowledged)], device: device)
        }
        #expect(!world.first.finish(id, device: device, .acknowledged, code: nil))
        #expect(try await world.waiting() == [id])
        gate.reopen(shard)
        #expect(await world.deliver(at: world.first).result == .stored(replaced: nil))
        #expect(try await world.first.cancel(id, of: device))
    }

    @Test func `parts of a call under way enter until the call ends`() async throws {
        try await gate.enter(shard)
        let closed = Task { await gate.close(shard, atMost: .seconds(100)) }
        await world.isClosing(world.first)
        #expect(world.first.isOpen(shard) && world.first.has(shard) && world.first.has(device))
        #expect(await world.deliver(at: world.first).result == .stored(replaced: nil))
        gate.leave(shard)
        #expect(await closed.value)
        #expect(!world.first.isOpen(shard) && world.first.has(shard))
    }

    @Test func `work for a device waits for the end of a move`() async throws {
        await close()
        let work = Task { try await world.first.inside(of: device) { 5 } }
        gate.reopen(shard)
        #expect(try await work.value == 5)
        await close()
        try world.give()
        await #expect(throws: StoreFault.self) { try await world.first.inside(of: device) { 5 } }
        #expect(try await world.second.inside(of: device) { 6 } == 6)
    }

    // MARK: Answers of devices

    @Test(arguments: [true, false])
    func `an answer during a move is written by the home that has the shard afterwards`(isGiven: Bool) async throws {
        let id = await world.deliver(at: world.first).id
        await close()
        world.first.finish(EnvelopeAnswer(id, .acknowledged), of: device)
        await world.first.flush()
        #expect(try await world.outcome(of: id) == nil)
        if isGiven { try world.give() } else { gate.reopen(shard) }
        await world.runtimes[isGiven ? 1 : 0].flush()
        #expect(try await world.outcome(of: id) == .acknowledged)
    }

    @Test func `an answer at a former home is passed on`() async throws {
        let id = await world.deliver(at: world.first).id
        await close()
        try world.give()
        world.first.finish(EnvelopeAnswer(id, .failed), of: device)
        await world.second.flush()
        #expect(try await world.outcome(of: id) == .failed)
    }

    @Test func `a session whose answers cannot wait ends`() async throws {
        let world = try await GatedHomes(mostWaiting: 1)
        let gate = try #require(world.first.gate)
        let session = MovingSession()
        #expect(try await world.arrive(as: session).device != nil)
        let ids = [await world.deliver(at: world.first).id, await world.deliver(at: world.first).id]
        #expect(await gate.close(shard, atMost: .zero))
        for id in ids { world.first.finish(EnvelopeAnswer(id, .acknowledged), of: device) }
        #expect(session.events.last == .ended(.storageUnavailable))
        gate.reopen(shard)
        await world.first.flush()
        // The other message is delivered again.
        #expect(try await world.waiting() == [ids[1]])
    }

    // MARK: Arrivals

    @Test func `an arrival that waits for a shard is sent to the new home`() async throws {
        let id = await world.deliver(at: world.first).id
        await close()
        let (session, other) = (MovingSession(), MovingSession())
        let fault = Task { () -> HomeFault? in
            do throws(HomeFault) {
                _ = try await world.arrive(at: world.first, as: other)
                return nil
            } catch {
                return error
            }
        }
        let arrival = Task { try await world.arrive(as: session) }
        try world.give()
        #expect(await fault.value == .moved(to: shard))
        #expect(try await arrival.value.device?.page.envelopes.map(\.id) == [id])
        #expect(world.second.isConnected(device) && !world.first.isConnected(device))
        #expect(await world.deliver(at: world.second).result == .stored(replaced: nil))
        #expect(session.events == [.storedMore] && other.events.isEmpty)
    }

    @Test func `an arrival that waits too long has no result`() async throws {
        let short = try await HomeGateTests(longestWait: .milliseconds(50))
        await short.close()
        let (session, world) = (MovingSession(), short.world)
        await #expect(throws: HomeFault.unreachable) { try await world.arrive(at: world.first, as: session) }
        #expect(!world.first.isConnected(world.device.serial))
        short.gate.reopen(shard)
        #expect(try await world.arrive(at: world.first, as: session).device != nil)
    }

    /// A home without shards that reads a device of a scripted store.
    private func scripted(_ store: ScriptedInboxStore) -> HomeRuntime {
        let sessions = LiveSessions()
        let scheduler = Scheduler { _, _ in }
        let writer = InboxWriter(
            store: store, sessions: sessions, scheduler: scheduler,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let inbox = Inbox(
            store: store, writer: writer, sessions: sessions, positions: PositionSource(epoch: 1),
            time: TimeSource { Sample.now }, random: Sample.random)
        store.found = .success(Arrival(device: world.device, envelopes: []))
        return HomeRuntime(
            inbox: inbox, sessions: sessions, store: world.store, gate: ShardGate(.none, scheduler: scheduler))
    }

    @Test func `a device whose shard was acquired after the read of the device is read again`() async throws {
        let store = ScriptedInboxStore()
        let home = scripted(store)
        store.onArrival { [shard] number in if number == 1 { home.take(shard) } }
        let session = MovingSession()
        #expect(try await world.arrive(at: home, as: session).device != nil)
        #expect(store.arrivals == 2 && home.isConnected(device))
    }

    @Test func `a visit of a device that began before its shard was taken is outdated`() throws {
        let home = scripted(ScriptedInboxStore())
        let before = home.beginVisit()
        #expect(!home.isOutdated(device, readAfter: before))
        home.take(shard)
        #expect(home.isOutdated(device, readAfter: before))
        #expect(!home.isOutdated(device, readAfter: home.beginVisit()))
    }

    @Test func `a session that arrives again does not take the place of a newer one`() async throws {
        let (former, newer, newest) = (MovingSession(), MovingSession(), MovingSession())
        let times = [OpeningTime.now(), .now()]
        #expect(try await world.arriveAgain(at: world.first, openedAt: times[0], as: former).device != nil)
        #expect(world.first.sessions.session(of: device) === former)
        #expect(try await world.arrive(at: world.first, as: newer).device != nil)
        #expect(former.events == [.ended(.replaced)])
        let again = MovingSession()
        #expect(try await world.arriveAgain(at: world.first, openedAt: times[1], as: again).device != nil)
        #expect(again.events == [.ended(.replaced)] && newer.events.isEmpty)
        #expect(world.first.sessions.session(of: device) === newer)
        #expect(try await world.arrive(at: world.first, as: newest).device != nil)
        #expect(newer.events == [.ended(.replaced)] && newest.events.isEmpty)
    }

    @Test func `of two sessions that arrive again the newer one stays, in any order of their arrival`() async throws {
        let (older, newer) = (MovingSession(), MovingSession())
        let times = [OpeningTime.now(), .now()]
        #expect(try await world.arriveAgain(at: world.first, openedAt: times[1], as: newer).device != nil)
        #expect(try await world.arriveAgain(at: world.first, openedAt: times[0], as: older).device != nil)
        #expect(older.events == [.ended(.replaced)] && newer.events.isEmpty)
        #expect(world.first.sessions.session(of: device) === newer)
    }

    @Test func `a device of another home is not admitted`() async throws {
        let store = ScriptedInboxStore()
        let home = scripted(store)
        home.inform(
            ArrivalListener(
                admitted: { _, _ in Issue.record("it is admitted") }, arrived: { _, _, _ in Issue.record("it arrived") }))
        let session = MovingSession()
        await #expect(throws: HomeFault.moved(to: shard)) { try await world.arrive(at: home, as: session) }
        #expect(store.arrivals == 1 && !home.isConnected(device))
    }

    // MARK: Reads, waiters and questions

    @Test func `a read of a device that moved is sent to the new home`() async throws {
        let id = await world.deliver(at: world.first).id
        await close()
        try world.give()
        await #expect(throws: HomeFault.moved(to: shard)) { try await world.first.read(GatedHomes.load, of: device) }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let read = try await world.homes.load(GatedHomes.load, of: device, logger: logger).get()
        guard case .page(let page) = read else {
            Issue.record("no page")
            return
        }
        #expect(page.envelopes.map(\.id) == [id])
    }

    @Test func `a poll that begins to wait during a move, or at a former home, ends`() async throws {
        let (early, late) = (MovingSession(), MovingSession())
        await close()
        world.first.addWaiter(early, for: device)
        #expect(early.events.isEmpty)
        try world.give()
        world.first.sessions.moved(shard, isReleased: true)
        #expect(early.events == [.ended(.moved)])
        world.first.addWaiter(late, for: device)
        #expect(late.events == [.ended(.moved)])
        world.second.addWaiter(late, for: device)
        #expect(await world.deliver(at: world.second).result == .stored(replaced: nil))
        #expect(late.events == [.ended(.moved), .storedMore])
    }

    private struct Question: HomeQuestion {
        typealias Answer = Int
        var shard: Shard?
    }

    /// Both homes answer with their places.
    private func answer() {
        for (place, home) in world.runtimes.enumerated() {
            var answers = HomeAnswers()
            answers.on(Question.self) { _ in place }
            home.take(answers)
            home.take { (_: HomeRequest, _: ShardPass?) async throws(HomeFault) -> HomeResponse in
                HomeResponse(status: 200 + place, fields: [], body: .whole([]))
            }
        }
    }

    @Test func `a question and a request that wait for a shard are answered by the new home`() async throws {
        answer()
        await close()
        let request = HomeRequest(method: "GET", path: "/", fields: [], body: .whole([]), shard: shard)
        let answered = Task { [shard] in try await world.homes.ask(Question(shard: shard), at: shard) }
        let fault = Task { () -> HomeFault? in
            do throws(HomeFault) {
                _ = try await world.first.handle(request)
                return nil
            } catch {
                return error
            }
        }
        // These wait for no shard.
        #expect(try await world.first.ask(Question()).get() == 0)
        let other = HomeRequest(method: "GET", path: "/", fields: [], body: .whole([]))
        #expect(try await world.first.handle(other).status == 200)
        try world.give()
        #expect(try await answered.value == 1)
        #expect(await fault.value == .moved(to: shard))
        #expect(try await world.second.handle(request).status == 201)
    }

    @Test func `a question that waits too long has no answer`() async throws {
        let short = try await HomeGateTests(longestWait: .milliseconds(50))
        short.answer()
        await short.close()
        await #expect(throws: HomeFault.unreachable) { try await short.world.first.ask(Question(shard: shard)) }
        short.gate.reopen(shard)
        #expect(try await short.world.first.ask(Question(shard: shard)).get() == 0)
        #expect(await short.gate.close(shard, atMost: .zero), "it has left")
    }
}
