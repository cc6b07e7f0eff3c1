import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Firings with which the process ends while the app handles them.
@Suite(.timeLimit(.minutes(5)))
struct FiringStartsTests {
    private typealias Fixture = ServiceEngineFixture

    private let base = PushClientTests()

    private static func frame(_ id: String, title: String = "t") -> FiredFrame {
        let body =
            #"{"subscription":"00000000000000000000000000000001","item":"i","at":5,"notification":{"title":"\#(title)"}}"#
        return FiredFrame(version: id, body: Array(body.utf8))
    }

    private func firing(_ id: String) throws -> SubscriptionFiring { try #require(SubscriptionFiring(Self.frame(id))) }

    private func starts(of id: String, in store: ClientStore) async throws -> Int {
        try await store.inStep { try ClientStore.firingStarts(of: id, in: $0) }
    }

    /// The device is sent a firing.
    private func send(_ id: String, starts: Int = 0, _ fixture: Fixture) async throws {
        let firing = try firing(id)
        try await fixture.engine.runner.perform { _, _ in [.notifySubscriptions(.fired(firing, starts: starts))] }
    }

    @Test func `ten starts that ended with the process end a firing, and nine do not`() throws {
        let firing = try firing("v")
        var session = ClientSessionTests.live()
        let frame = ServerFrame.fired(Self.frame("v"))
        let now = ContinuousClock.now
        let given = session.received(frame, answered: nil, firingStarts: 9, at: now, random: 0)
        #expect(given == [.notifySubscriptions(.fired(firing, starts: 9))])
        let answer = MessageAnswer(id: "v", code: 301)
        let ended = session.received(frame, answered: nil, firingStarts: 10, at: now, random: 0)
        let expected: [SessionAction] = [
            .write(.saveAnswer(answer)), .write(.saveFiringStarts(id: "v", 0)), .send(answer.frame),
            .noteCrashingFiring(firing, starts: 10),
        ]
        #expect(ended == expected)
    }

    @Test func `a start is stored before a firing reaches the app, and removed when the app is done with it`()
        async throws
    {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await send("a", starts: 2, fixture)
        try await send("b", fixture)
        let reading = FiringReading(runner.firings)
        let first = await reading.next()
        #expect(first?.id == "a")
        #expect(try await starts(of: "a", in: fixture.store) == 3)
        #expect(try await starts(of: "b", in: fixture.store) == 0, "it waits")
        let second = await reading.next()
        #expect(second?.id == "b")
        #expect(try await starts(of: "a", in: fixture.store) == 0)
        #expect(try await starts(of: "b", in: fixture.store) == 1)
    }

    @Test func `an iteration that breaks off does not count, and its firing can come again`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        for _ in 0..<2 {
            try await send("a", starts: 3, fixture)
            for await firing in SubscriptionFirings(queue: runner.firings) {
                #expect(firing.id == "a")
                #expect(try await starts(of: "a", in: fixture.store) == 4)
                break
            }
            try await eventually { !runner.firings.isUnhandled("a") }
            #expect(try await starts(of: "a", in: fixture.store) == 3)
        }
    }

    @Test func `a client that stops removes the starts of firings, and stores none before it runs again`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await send("a", fixture)
        try await send("b", fixture)
        try await send("c", fixture)
        let reading = FiringReading(runner.firings)
        _ = await reading.next()
        #expect(try await starts(of: "a", in: fixture.store) == 1)
        runner.stopStarts()
        await runner.flush()
        #expect(try await starts(of: "a", in: fixture.store) == 0)
        _ = await reading.next()
        #expect(try await starts(of: "b", in: fixture.store) == 0)
        runner.resumeStarts()
        _ = await reading.next()
        #expect(try await starts(of: "c", in: fixture.store) == 1)
    }

    @Test func `a firing that was under way when the process ended waits for its turn, until the iteration ends`()
        async throws
    {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await send("a", starts: 1, fixture)
        #expect(runner.suspects.begin(.message(1), at: .now))
        let waiting = Task { await FiringReading(runner.firings).next()?.id }
        try await eventually { runner.firings.isUnhandled("a") }
        runner.firings.endIterations()
        #expect(await waiting.value == nil)
        try await eventually { !runner.firings.isUnhandled("a") }
        #expect(try await starts(of: "a", in: fixture.store) == 0)
        try await send("a", starts: 1, fixture)
        let next = Task { await FiringReading(runner.firings).next()?.id }
        try await eventually { runner.firings.isUnhandled("a") }
        runner.suspects.end(.message(1))
        #expect(await next.value == "a")
    }

    @Test func `a client that stops leaves the turn of a firing to other entries`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await send("a", starts: 1, fixture)
        let reading = FiringReading(runner.firings)
        let first = await reading.next()
        #expect(first?.id == "a")
        #expect(!runner.suspects.begin(.message(1), at: .now), "the firing has its turn")
        runner.stopStarts()
        #expect(runner.suspects.begin(.message(1), at: .now))
        withExtendedLifetime(reading) {}
    }

    /// The device gets another user, or is signed out.
    private func changeOwner(_ fixture: Fixture, bySigningOut isSignedOut: Bool) async throws {
        guard isSignedOut else { return try await fixture.become("bob") }
        try await fixture.engine.runner.perform { session, context in session.signedOut(at: context.now) }
    }

    @Test(arguments: [true, false])
    func `a reader does not receive the firings of a former owner, and waits for the next one`(isSignedOut: Bool)
        async throws
    {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await fixture.become("ada")
        try await send("a", starts: 1, fixture)
        try await send("b", fixture)
        #expect(runner.suspects.begin(.message(1), at: .now))
        let waiting = Task { await FiringReading(runner.firings).next()?.id }
        try await eventually { runner.firings.isUnhandled("a") }
        try await changeOwner(fixture, bySigningOut: isSignedOut)
        runner.suspects.end(.message(1))
        try await send("c", fixture)
        #expect(await waiting.value == "c")
        await runner.flush()
        #expect(try await starts(of: "a", in: fixture.store) == 0)
        #expect(try await starts(of: "b", in: fixture.store) == 0)
    }

    /// The app names bob, and the server answers.
    private func nameBob(_ runner: SessionRunner) async throws {
        try await runner.perform { session, context in session.userSet(.signedIn("bob"), at: context.now) }
    }

    private func answer(_ runner: SessionRunner, isTaken: Bool) async throws {
        try await runner.perform { session, context in
            guard let identity = session.registration.identity else { return [] }
            let bob = UserChange.signedIn("bob")
            if isTaken { return session.userAccepted(bob, of: identity, as: "bob", at: context.now) }
            return session.userRefused(bob, of: identity, PushError(.userRefused, "no"), at: context.now)
        }
    }

    @Test(arguments: [true, false])
    func `firings wait for the answer about another user, and are dropped if the server accepts that user`(isTaken: Bool)
        async throws
    {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await fixture.become("ada")
        try await send("a", fixture)
        let start = runner.delegateStart(of: FiringQueue.Entry(firing: try firing("d"), starts: 0))
        #expect(!runner.firings.isPaused)
        try await nameBob(runner)
        #expect(runner.firings.isPaused)
        let waiting = Task { await FiringReading(runner.firings).next()?.id }
        let delegates = Task { await start.begins() }
        try await eventually { runner.firings.isUnhandled("a") }
        for _ in 0..<10 { await runner.flush() }
        #expect(try await starts(of: "a", in: fixture.store) == 0)
        #expect(try await starts(of: "d", in: fixture.store) == 0)
        try await answer(runner, isTaken: isTaken)
        #expect(!runner.firings.isPaused)
        try await send("c", fixture)
        #expect(await waiting.value == (isTaken ? "c" : "a"))
        #expect(await delegates.value == !isTaken)
        start.ended()
        await runner.flush()
        #expect(try await starts(of: "d", in: fixture.store) == 0)
    }

    @Test func `the start of a firing is taken back when the app names another user meanwhile`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await fixture.become("ada")
        try await send("a", starts: 2, fixture)
        #expect(runner.suspects.begin(.message(1), at: .now))
        let waiting = Task { await FiringReading(runner.firings).next()?.id }
        try await eventually { runner.firings.isUnhandled("a") }
        // The firing waits for its turn.
        try await nameBob(runner)
        runner.suspects.end(.message(1))
        // The start was stored, and taken back.
        try await eventually {
            try await fixture.store.inStep { try ClientStore.firingStarts(of: "a", in: $0) } == 2
        }
        try await answer(runner, isTaken: false)
        #expect(await waiting.value == "a")
    }

    @Test(arguments: [true, false])
    func `an iteration that waits for the answer about a user can be ended and cancelled`(isCancelled: Bool) async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await send("a", fixture)
        runner.firings.setPaused(true)
        let waiting = Task { await FiringReading(runner.firings).next()?.id }
        let start = runner.delegateStart(of: FiringQueue.Entry(firing: try firing("d"), starts: 0))
        let delegates = Task { await start.begins() }
        try await eventually { runner.firings.isUnhandled("a") }
        if isCancelled {
            waiting.cancel()
            delegates.cancel()
        } else {
            runner.firings.endIterations()
        }
        #expect(await waiting.value == nil)
        // The delegates may have begun to wait after the iterations ended.
        delegates.cancel()
        #expect(await !delegates.value)
        #expect(!runner.firings.isUnhandled("a"))
    }

    @Test func `a run begins without firings if an earlier one named another user`() async throws {
        let fixture = try await Fixture()
        let users: [UserChange?] = [.signedIn("bob"), nil]
        for user in users {
            var stored = StoredState()
            stored.user = user
            let runner = SessionRunner(
                store: fixture.store, session: ClientSession(.init(), restoring: stored),
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            #expect(runner.firings.isPaused == (user != nil))
        }
    }

    @Test(arguments: [true, false])
    func `an iteration that breaks off after the owner changed leaves no start`(isSignedOut: Bool) async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await fixture.become("ada")
        try await send("a", starts: 3, fixture)
        for await firing in SubscriptionFirings(queue: runner.firings) {
            #expect(firing.id == "a")
            try await changeOwner(fixture, bySigningOut: isSignedOut)
            break
        }
        try await eventually { !runner.firings.isUnhandled("a") }
        #expect(try await starts(of: "a", in: fixture.store) == 0)
    }

    @Test func `a firing whose owner changes while its start is stored is withdrawn, and the next one is delivered`()
        async throws
    {
        let takenBack = Mutex<[String]>([])
        let queues = Mutex<[FiringQueue]>([])
        let queue = FiringQueue(
            .init(
                begins: { entry, _ in
                    if entry.id == "a" { queues.withLock { $0.first }?.ownerChanged() }
                    return true
                },
                abandoned: { entry in takenBack.withLock { $0.append(entry.id) } }))
        queues.withLock { $0 = [queue] }
        queue.add(try firing("a"))
        let waiting = Task { await queue.next()?.id }
        try await eventually { queue.hasReader }
        queue.add(try firing("b"))
        #expect(await waiting.value == "b")
        #expect(takenBack.withLock { $0 } == ["a"])
        queues.withLock { $0 = [] }
    }

    @Test func `the starts of the newest thousand firings are remembered, and of none after a sign-out`() async throws {
        let fixture = try await Fixture()
        try await fixture.store.inStep { database in
            for number in 0...1000 { try StoreChange.saveFiringStarts(id: "\(number)", 1).apply(to: database) }
            try StoreChange.saveFiringStarts(id: "1000", 2).apply(to: database)
        }
        #expect(try await starts(of: "0", in: fixture.store) == 0)
        #expect(try await starts(of: "1", in: fixture.store) == 1)
        #expect(try await starts(of: "1000", in: fixture.store) == 2)
        try await fixture.store.inStep { try StoreChange.eraseIdentity.apply(to: $0) }
        #expect(try await starts(of: "1000", in: fixture.store) == 0)
    }

    @Test func `firings that the app was done with do not displace the starts of others`() async throws {
        let fixture = try await Fixture()
        try await fixture.store.inStep { database in
            try StoreChange.saveFiringStarts(id: "x", 1).apply(to: database)
            for number in 0..<1000 {
                try StoreChange.saveFiringStarts(id: "\(number)", 1).apply(to: database)
                try StoreChange.saveFiringStarts(id: "\(number)", 0).apply(to: database)
            }
        }
        #expect(try await starts(of: "x", in: fixture.store) == 1)
    }

    @Test func `firings of more than 8 MiB are not taken, and a larger one is taken alone`() async throws {
        let queue = FiringQueue(.init())
        let title = String(repeating: "x", count: 3 << 20)
        for id in ["a", "b", "c"] {
            let large = try #require(SubscriptionFiring(Self.frame(id, title: title)))
            #expect(queue.add(large) == (id != "c"))
        }
        queue.disconnected()
        let larger = try #require(SubscriptionFiring(Self.frame("d", title: title + title + title)))
        #expect(queue.add(larger))
        #expect(!queue.add(try firing("e")))
        let reading = FiringReading(queue)
        _ = await reading.next()
        #expect(!queue.add(try firing("e")), "the app has it")
        let next = Task { await reading.next()?.id }
        try await eventually { queue.hasReader }
        #expect(queue.add(try firing("e")))
        #expect(await next.value == "e")
    }

    /// Returns the subscription of the firings, as the server has it.
    private func subscription(_ runner: SessionRunner) throws -> NotificationSubscription {
        let subscription = NotificationSubscription(
            items: ["i"], fields: ["price"], format: CarillonClient.NotificationFormat(title: "t"), trigger: "price > 1.0",
            key: "k")
        runner.subscriptions.connected(version: 3)
        try runner.subscriptions.subscribe(subscription)
        let definition = subscription.present.definition
        let at = "2026-01-01T00:00:00.000Z"
        let body = SubscriptionBody(
            id: try firing("v").subscriptionID, items: definition.items, fields: definition.fields, mode: nil,
            trigger: definition.trigger, format: definition.format.json, policy: "once", coolDown: nil, key: "k", tags: [],
            expiresAt: nil, status: "subscribed", statusAt: at, createdAt: at, firedAt: nil,
            hash: definition.hash)
        // The subscription is the first request.
        runner.subscriptions.answered(.init(id: 1, status: 201, body: Array(try JSONEncoder().encode(body))))
        #expect(subscription.status == .subscribed)
        return subscription
    }

    /// Receives the firings of a subscription.
    private final class Delegate: NotificationSubscriptionDelegate {
        let heard = Mutex<[String]>([])
        private let trigger: @Sendable () -> String

        init(trigger: @escaping @Sendable () -> String = { "triggered" }) { self.trigger = trigger }

        func didTrigger(_ subscription: NotificationSubscription) {
            let text = trigger()
            heard.withLock { $0.append(text) }
        }

        func didChangeStatus(of subscription: NotificationSubscription, to status: NotificationSubscription.Status) {
            let text = trigger()
            heard.withLock { $0.append("status: " + text) }
        }

        func didUnsubscribe(_ subscription: NotificationSubscription) { heard.withLock { $0.append("end") } }
    }

    /// Ends the subscription, and returns the earlier events of a delegate.
    private func all(_ delegate: Delegate, _ runner: SessionRunner) async throws -> [String] {
        runner.subscriptions.signedOut()
        try await eventually { delegate.heard.withLock { $0.last } == "end" }
        // The end is a change of the status, too.
        return delegate.heard.withLock { Array($0.dropLast(2)) }
    }

    @Test func `a firing that the app does not receive changes its subscription, and calls no delegate with the firing`()
        async throws
    {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        let subscription = try subscription(runner)
        let delegate = Delegate()
        subscription.addDelegate(delegate)
        let firing = try firing("v")
        try await runner.perform { _, _ in [.noteCrashingFiring(firing, starts: HandlerStarts.most)] }
        #expect(subscription.status == .triggered)
        #expect(try await all(delegate, runner) == ["status: triggered"])
    }

    @Test func `a start is stored while the delegates of a subscription are called with a firing`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        let subscription = try subscription(runner)
        let entry = FiringQueue.Entry(firing: try firing("a"), starts: 2)
        let delegate = Delegate { runner.firingStarts.hasStarted(entry) ? "started" : "not started" }
        subscription.addDelegate(delegate)
        try await send("a", starts: 2, fixture)
        #expect(try await all(delegate, runner) == ["status: started", "started"])
        await runner.flush()
        #expect(!runner.firingStarts.hasStarted(entry))
        #expect(try await starts(of: "a", in: fixture.store) == 2)
    }

    @Test func `the delegates and the reader of a firing have one start, which the last of them removes`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        try await send("a", starts: 2, fixture)
        let start = runner.delegateStart(of: FiringQueue.Entry(firing: try firing("a"), starts: 2))
        #expect(await start.begins())
        #expect(try await starts(of: "a", in: fixture.store) == 3)
        for await firing in SubscriptionFirings(queue: runner.firings) {
            #expect(firing.id == "a")
            #expect(try await starts(of: "a", in: fixture.store) == 3)
            break
        }
        try await eventually { !runner.firings.isUnhandled("a") }
        await runner.flush()
        #expect(try await starts(of: "a", in: fixture.store) == 3, "the delegates have it")
        start.ended()
        await runner.flush()
        #expect(try await starts(of: "a", in: fixture.store) == 2)
    }

    @Test func `delegates of an answered firing leave no start`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        let entry = FiringQueue.Entry(firing: try firing("a"), starts: 2)
        let start = runner.delegateStart(of: entry)
        #expect(await start.begins())
        runner.firings.handled(entry)
        await runner.flush()
        #expect(try await starts(of: "a", in: fixture.store) == 0)
        start.ended()
        #expect(await start.begins(), "the delegates are called")
        #expect(try await starts(of: "a", in: fixture.store) == 0)
        start.ended()
        await runner.flush()
        #expect(try await starts(of: "a", in: fixture.store) == 0)
    }

    @Test func `delegates are not called with a firing of a former owner`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        let start = runner.delegateStart(of: FiringQueue.Entry(firing: try firing("a"), starts: 1))
        runner.firings.ownerChanged()
        #expect(await !start.begins())
        start.ended()
        await runner.flush()
        #expect(try await starts(of: "a", in: fixture.store) == 0)
    }

    @Test func `delegates are called once with a repeated firing, until the server is answered`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        let subscription = try subscription(runner)
        let delegate = Delegate()
        subscription.addDelegate(delegate)
        try await send("a", starts: 2, fixture)
        runner.firings.disconnected()
        #expect(runner.firings.starts(of: "a") == 2, "a start of this process has not ended with it")
        try await send("a", starts: 2, fixture)
        try await send("b", fixture)
        #expect(try await all(delegate, runner) == ["status: triggered", "triggered", "triggered"])
        let reading = FiringReading(runner.firings)
        let first = await reading.next()
        #expect(first?.id == "a")
        _ = await reading.next()
        await runner.flush()
        #expect(runner.firings.starts(of: "a") == nil)
        #expect(runner.firings.starts(of: "b") == 0)
    }

    @Test func `the newest thousand reported firings are remembered, and none of a former owner`() throws {
        let queue = FiringQueue(.init())
        for number in 0...1000 {
            #expect(queue.notifies(try firing("\(number)"), starts: 1) != nil)
            #expect(queue.notifies(try firing("\(number)"), starts: 1) == nil)
        }
        #expect(queue.starts(of: "0") == nil && queue.starts(of: "1") == 1 && queue.starts(of: "1000") == 1)
        queue.ownerChanged()
        #expect(queue.starts(of: "1000") == nil)
    }

    @Test(arguments: [SubscriptionFact.userChanged, .signedOut, .deviceLost])
    func `iterations do not receive a firing of a former owner`(fact: SubscriptionFact) async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        var events = PushDeviceEvents(listeners: runner.deviceListeners).makeAsyncIterator()
        let crashed = try firing("a")
        try await runner.perform { _, _ in
            [.notifyDevice([.firingCrashed(crashed), .resumed]), .notifySubscriptions(fact)]
        }
        #expect(await events.next() == .resumed)
    }

    @Test(arguments: [9, 10])
    func `after ten starts that ended with the process the server is notified of a firing, and the app gets an event`(
        times: Int
    ) async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        try client.start()
        let (socket, _) = try await server.welcome()
        try await client.runner.perform { _, _ in [.write(.saveFiringStarts(id: "v", times))] }
        var events = client.device.events.makeAsyncIterator()
        socket.send(.fired(Self.frame("v")))
        if times == 10 {
            #expect(try await socket.receive() == .nack(version: "v", code: 301))
            guard case .firingCrashed(let crashed)? = await events.next() else { throw ServerSocket.Ended() }
            #expect(crashed.id == "v" && crashed.notification.title == "t")
        } else {
            let reading = FiringReading(client.runner.firings)
            let given = await reading.next()
            #expect(given?.id == "v")
            // The server sends it once more while the app has it.
            socket.send(.fired(Self.frame("v")))
            socket.send(.fired(Self.frame("w")))
            let next = await reading.next()
            #expect(next?.id == "w")
            #expect(try await socket.receive() == .ack([.init(version: "v", code: 100)]))
        }
        await client.stop()
    }
}
