import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The state that features remember and no table has, after a restart and without one.
@Suite(.timeLimit(.minutes(5)))
struct FeatureRestartTests {
    // MARK: Outbox

    @Test(arguments: [false, true])
    func `a push queue that was paused is open after a restart`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        try await world.send()
        let push = try #require(try await world.due().first)
        _ = await world.domain.outbox.ended(
            push, .credentialsRefused(reason: "InvalidProviderToken"), hasOther: false)
        #expect(world.domain.outbox.faults.count == 1)
        if isRestarted { try await world.restart() }
        #expect(world.domain.outbox.faults.count == (isRestarted ? 0 : 1))
        let again = try await world.due()
        let expected = isRestarted ? [push.id] : []
        #expect(again.map(\.id) == expected)
        #expect(again.allSatisfy { $0.attempt == 1 }, "a failed attempt does not count")
    }

    @Test(arguments: [false, true])
    func `after a restart a push whose result could not be written is sent again under its name`(isRestarted: Bool)
        async throws
    {
        var world = try await RestartWorld()
        try await world.send()
        let push = try #require(try await world.due().first)
        stores.refuseChanges(of: world.store, with: StoreFault(.full, "the disk is full"))
        _ = await world.domain.outbox.ended(push, .taken, hasOther: false)
        stores.refuseChanges(of: world.store, with: nil)
        if isRestarted { try await world.restart() }
        world.advance(seconds: LeasedPush.leaseSeconds - 1)
        #expect(try await world.due().isEmpty)
        world.advance(seconds: 1)
        let again = try await world.due()
        let expected = isRestarted ? [push.id] : []
        #expect(again.map(\.id) == expected)
    }

    @Test(arguments: [false, true])
    func `the payloads of the environment test are forgotten with a restart`(isRestarted: Bool) async throws {
        var world = try await RestartWorld()
        try await world.send()
        let push = try #require(try await world.due().first)
        let queue = PushQueue(app: world.device.app, environment: .test)
        _ = await world.domain.gateways.gateway(queue)?.send(push)
        #expect(world.domain.gateways.testPushes(of: world.device.app).count == 1)
        if isRestarted { try await world.restart() }
        #expect(world.domain.gateways.testPushes(of: world.device.app).count == (isRestarted ? 0 : 1))
    }

    // MARK: Rates, users and time

    @Test(arguments: [false, true])
    func `after a restart a channel has its whole rate again`(isRestarted: Bool) async throws {
        var settings = RestartWorld.Settings()
        settings.rateLimits.channelMessages = Rate(perSecond: 1, burst: 2)
        var world = try await RestartWorld(settings)
        for _ in 0..<2 { try await world.send() }
        if isRestarted {
            try await world.restart()
            for _ in 0..<2 { try await world.send() }
        }
        let present = world
        let refusal = await #expect(throws: Refusal.self) { try await present.send() }
        #expect(refusal?.code == .rateLimited)
    }

    @Test(arguments: [false, true])
    func `after a restart user tokens are refused until the key set can be fetched`(isRestarted: Bool) async throws {
        let signer = TokenSigner.es256(P256.Signing.PrivateKey())
        let keys = "{\"keys\":[\(try signer.jwk("one"))]}"
        let answer = Mutex(UserKeyFetcher.Answer.found(Array(keys.utf8)))
        var settings = RestartWorld.Settings()
        settings.userKeys = UserKeyFetcher { _ in answer.withLock { $0 } }
        var world = try await RestartWorld(settings)
        let rules = try #require(JSONValue(parsing: Array(#"{"jwksURL":"https://id.example/keys"}"#.utf8)))
        _ = try await world.domain.users.set(rules, of: world.device.appID)
        let token = try signer.token(
            #"{"sub":"ada","aud":"com.example.app","exp":\#(world.now.seconds + 10_000)}"#, header: ["kid": "\"one\""])
        #expect(try await world.domain.users.user(assertedBy: token, in: world.device.app).text == "ada")
        answer.withLock { $0 = .failed("the address does not answer") }
        if isRestarted {
            try await world.restart()
            let present = world
            let refusal = await #expect(throws: Refusal.self) {
                try await present.domain.users.user(assertedBy: token, in: present.device.app)
            }
            #expect(refusal?.code == .userKeysUnavailable)
            answer.withLock { $0 = .found(Array(keys.utf8)) }
            world.advance(seconds: UserKeyFetches.spacingSeconds)
        }
        #expect(try await world.domain.users.user(assertedBy: token, in: world.device.app).text == "ada")
    }

    @Test
    func `after a restart the time of service continues to the minute, and nothing is removed permanently for an hour`()
        async throws
    {
        var world = try await RestartWorld()
        world.advance(seconds: ServedClock.settlingSeconds)
        #expect(world.domain.served.retention()?.served == ServedClock.settlingSeconds)
        try await world.domain.served.write()
        world.advance(seconds: 59)
        try await world.domain.served.write()
        #expect(world.domain.served.seconds == ServedClock.settlingSeconds + 59)
        try await world.restart()
        #expect(world.domain.served.seconds == ServedClock.settlingSeconds)
        #expect(world.domain.served.retention() == nil)
        world.advance(seconds: ServedClock.settlingSeconds)
        #expect(world.domain.served.retention()?.served == 2 * ServedClock.settlingSeconds)
    }

    // MARK: Updates

    @Test(arguments: [false, true])
    func `after a restart the log is evaluated for a device again, and nothing is delivered twice`(isRestarted: Bool)
        async throws
    {
        var world = try await UpdateWorld(store: stores.openKept())
        let update = try await world.publish(audience: "region == 'north'")
        let copies = try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "7"))
        #expect(copies.map(\.update) == [update])
        for _ in 0..<3 { try await world.ask() }
        var looks = world.routes.domain.updateDelivery.evaluations
        if isRestarted {
            try await stores.close(world.routes.store)
            world = try await UpdateWorld(world, goingOnWith: stores.reopen(world.routes.store))
            looks = 1
        }
        for _ in 0..<2 {
            let answer = try await world.ask()
            #expect(answer["parametersRevision"] == "7" && answer.json?["envelopes"] == .array([]))
            #expect(world.routes.domain.updateDelivery.evaluations == looks)
        }
        try await stores.close(world.routes.store)
    }

    // MARK: Items

    private func acknowledgeAll(_ world: EngineWorld) async throws {
        try await world.settle()
        let device = world.device.serial
        let inbox = world.domain.runtime.inbox
        let waiting = try await world.store.waiting(
            device: device, after: 0, limit: 100, bytes: 1 << 20, at: world.domain.time.now())
        for envelope in waiting ?? [] { inbox.finish(envelope.id, device: device, .acknowledged, code: nil) }
        await inbox.flush()
    }

    /// The event between the crossing and the next update.
    enum Interruption: CaseIterable {
        case none, restart
        /// Another item needs the memory.
        case removalFromMemory
    }

    @Test(arguments: Interruption.allCases, [false, true])
    func `a crossing that a full inbox refused fires, also after a restart`(after: Interruption, holds: Bool) async throws {
        let settings = StoreSettings(inbox: InboxLimits(envelopes: 1))
        var limits = ItemEngine.Limits()
        if after == .removalFromMemory { limits.items = 1 }
        var world = try await EngineWorld(stores.openKept(settings), limits: limits)
        let other = ItemKey(app: world.item.app, name: try #require(ItemName("other")))
        // A condition that is true when it is armed must not fire before it was false.
        try await world.publish(holds ? 12 : 1)
        _ = try await world.subscribe("price > 10.0", .everyCrossing)
        if holds { try await world.publish(1) }
        try await world.publish(11)
        #expect(try await world.titles() == ["11.0"])
        try await acknowledgeAll(world)
        // Another subscription fills the inbox.
        _ = try await world.subscribe("price > 0.0", key: "other", on: other)
        _ = try await world.domain.items.publish(
            [WrittenField("price", .number("7.0"))], to: other.name, of: other.app)
        // An item is removed from memory only if it has no work.
        try await world.settle()
        try await world.publish(1)
        try await world.publish(12)
        #expect(try await world.titles() == ["7.0"])
        try await acknowledgeAll(world)
        switch after {
        case .none: break
        case .restart:
            let place = try #require(stores.place(of: world.store))
            try await stores.close(world.store)
            world = try await EngineWorld(stores.open(at: place, settings))
        case .removalFromMemory:
            _ = try await world.domain.items.publish(
                [WrittenField("price", .number("8.0"))], to: other.name, of: other.app)
            try await world.settle()
        }
        try await world.publish(13)
        // An item that is loaded fires with the value that it has.
        #expect(try await world.titles() == [after == .none ? "13.0" : "12.0"])
        try await acknowledgeAll(world)
        try await world.publish(15)
        #expect(try await world.titles().isEmpty, "the condition is still true")
        try await world.publish(1)
        try await world.publish(14)
        #expect(try await world.titles() == ["14.0"], "the next crossing")
        try await stores.close(world.store)
    }

    // MARK: Services

    @Test func `a request that was made before a restart has one result`() async throws {
        let time = TimeSource { Timestamp(milliseconds: 1_800_000_000_000) }
        let store = try await stores.openKept()
        let before = ServiceWorld(over: try await RouteFixture(store: store, time: time))
        let consumer = try await before.phone("com.example.mail", of: "ada")
        let provider = try await before.phone("com.example.files", of: "ada")
        try await before.share("house", "com.example.mail", "com.example.files")
        #expect(try await before.offer(provider).status == 204)
        #expect(try await before.ask(1, from: consumer, to: provider).status == 201)
        try await stores.close(store)

        let again = try await stores.reopen(store)
        let after = ServiceWorld(over: try await RouteFixture(store: again, time: time))
        #expect(try await after.ask(1, from: consumer, to: provider).status == 201, "the same request")
        #expect(try await after.events(of: provider).count == 1)
        #expect(try await after.reply(1, by: provider).status == 204)
        #expect(try await after.reply(1, by: provider, body: [9]).code == "request_finished")
        let id = try #require(ServiceRequestID(ServiceWorld.id(1)))
        #expect(
            try await after.events(of: consumer)
                == [.reply(id, from: provider.peer, ServiceWorld.content(body: [8]))])
        try await stores.close(again)
    }
}
