import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import HTTPTypes
import TestSupport
import Testing

@testable import CarillonServer

/// The states of pushes that senders and operators read over HTTP.
@Suite(.timeLimit(.minutes(5)))
struct PushFactTests {
    private struct World {
        let routes: RouteFixture
        let device: Device
        let channel: PushChannel
        let sender: String
        var domain: HomeDomain { routes.domain }
        var queue: PushQueue { PushQueue(app: device.app, environment: .production) }
        static let app = "/v1/apps/com.example.app"

        init(isConfigured: Bool = true, _ environment: PushEnvironment = .production) async throws {
            routes = try await RouteFixture(key: WrappingKey(bytes: Array(repeating: 1, count: 32)))
            let admin = routes.admin
            _ = try await routes.request(.post, "/v1/apps", key: admin, #"{"id":"com.example.app"}"#)
            sender = try await routes.request(
                .post, "/v1/keys", key: admin, #"{"role":"sender","app":"com.example.app"}"#)["secret"]
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: environment)
            let app = try #require(AppID("com.example.app"))
            device = try await routes.domain.devices.register(app: app, reporting: profile).device
            let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
            channel = try await routes.domain.channels.register(
                id, device: device.serial, name: nil, vapidKey: nil, wake: nil
            ).channel
            try await routes.domain.gateways.open()
            guard isConfigured else { return }
            let pem = P256.Signing.PrivateKey().pemRepresentation
            let members = ["p8": pem, "keyID": "ABC1234567", "teamID": "DEF1234567"]
            let body = JSONValue.object(members.map { .init(name: $0.key, value: .string($0.value)) })
            _ = try await routes.domain.gateways.set(body, of: app, for: .production)
        }

        func send(ttl: Int64 = 1000) async throws -> MessageID {
            try await domain.publisher.publish(
                PublishRequest(
                    body: Array("hello".utf8), coding: ContentCoding(.identity), ttl: ttl, urgency: .normal, topic: nil),
                to: channel
            ).id
        }

        func lease(after seconds: Int64 = 0) async throws -> LeasedPush {
            let now = domain.time.now().adding(seconds: seconds)
            let leased = try await store.leasePushes(of: queue, in: .all, limit: 1, at: now, until: now.adding(seconds: 60))
            return try #require(leased.pushes.first)
        }

        var store: any PushStore { domain.pushes }

        func end(_ push: LeasedPush, _ verdict: PushEnd.Verdict) async throws {
            _ = try await store.endPushes([PushEnd(push, verdict, at: domain.time.now())])
        }

        /// Returns the pushes of a message that its sender reads.
        func facts(_ id: MessageID) async throws -> [JSONValue] {
            let answer = try await routes.request(.get, "/v1/messages/\(id)", key: sender)
            #expect(answer.status == 200)
            guard case .array(let pushes)? = answer.json?["pushes"] else { return [] }
            for push in pushes { #expect(push["at"] != nil && push["kind"] == .string("wake")) }
            return pushes
        }

        func states(_ id: MessageID) async throws -> [JSONValue?] { try await facts(id).map { $0["state"] } }
    }

    @Test func `scheduled, then handed with its apns-id`() async throws {
        let world = try await World()
        let id = try await world.send()
        let scheduled = try #require(try await world.facts(id).first)
        #expect(scheduled["state"] == .string("scheduled") && scheduled["dueAt"] != nil && scheduled["apnsID"] == nil)
        let push = try await world.lease()
        #expect(try await world.states(id) == [.string("scheduled")], "the result of a pending push is not known")
        try await world.end(push, .handed)
        let handed = try #require(try await world.facts(id).first)
        #expect(handed["state"] == .string("handed") && handed["apnsID"] == .string(push.id.uuidText))
    }

    @Test func `unconfigured while the app has no credentials`() async throws {
        let world = try await World(isConfigured: false)
        #expect(try await world.states(try await world.send()) == [.string("unconfigured")])
    }

    @Test func `rejected with the reason, and suspended since then`() async throws {
        let world = try await World()
        let id = try await world.send()
        try await world.end(try await world.lease(), .tokenDead(reason: "Unregistered", since: nil))
        let facts = try await world.facts(id)
        #expect(facts.map { $0["state"] } == [.string("rejected"), .string("suspended")])
        #expect(facts[0]["reason"] == .string("Unregistered"))
    }

    @Test func `cancelled when the message was taken back, and expired when its time was over`() async throws {
        let world = try await World()
        let one = try await world.send()
        try await world.end(
            try await world.lease(), .again(at: world.domain.time.now().adding(seconds: 60), isSpent: true, reason: "x"))
        #expect(try await world.domain.runtime.inbox.cancel(one))
        let later = world.domain.time.now().adding(seconds: 61)
        let leased = try await world.store.leasePushes(
            of: world.queue, in: .all, limit: 1, at: later, until: later.adding(seconds: 60))
        #expect(leased.pushes.isEmpty)
        #expect(try await world.states(one) == [.string("cancelled")])

        let other = try await World()
        let id = try await other.send(ttl: 20)
        let now = other.domain.time.now()
        try await other.end(try await other.lease(), .again(at: now.adding(seconds: 30), isSpent: true, reason: "x"))
        _ = try await other.store.sweepPushes(in: .all, at: now.adding(seconds: 31), forgetting: nil, limit: 100)
        #expect(try await other.states(id) == [.string("expired")])
    }

    @Test func `parked with the reason, listed, and requeued by an operator`() async throws {
        let world = try await World()
        let (app, admin) = (World.app, world.routes.admin)
        let id = try await world.send()
        let push = try await world.lease()
        try await world.end(push, .parked(reason: "BadTopic"))
        #expect(try await world.facts(id).first?["reason"] == .string("BadTopic"))
        #expect(try await world.states(id).first == .string("parked"))
        let list = try await world.routes.request(.get, app + "/pushes/parked", key: admin)
        guard case .array(let parked)? = list.json?["pushes"] else { throw NoList() }
        #expect(parked.count == 1 && parked[0]["apnsID"] == .string(push.id.uuidText))
        #expect(parked[0]["state"] == .string("parked"))
        for path in ["/pushes/parked?limit=0", "/pushes/parked?limit=1001", "/pushes/parked?limit=x"] {
            let answer = try await world.routes.request(.get, app + path, key: admin)
            #expect(answer.status == 400 && answer.code == "parameter_invalid", "\(path)")
        }
        #expect(try await world.routes.request(.post, app + "/pushes/parked/requeue", key: world.sender).status == 403)
        let requeued = try await world.routes.request(.post, app + "/pushes/parked/requeue", key: admin)
        #expect(requeued.json?["requeued"] == JSONValue(parsing: Array("1".utf8)))
        let again = try await world.lease(after: 1)
        #expect(again.id == push.id)
        #expect(
            try await world.routes.request(.post, "/v1/apps/com.example.none/pushes/parked/requeue", key: admin).code
                == "app_unknown")
    }

    private struct NoList: Error {}

    @Test func `a paused push queue is shown by the readiness of the server`() async throws {
        let world = try await World()
        _ = try await world.send()
        let before = try await world.routes.request(.get, "/health/ready")
        #expect(before.status == 200 && before.json?["gateways"] == nil)
        let push = try #require(try await world.domain.outbox.due { _ in true }.pushes.first)
        _ = await world.domain.outbox.ended(push, .credentialsRefused(reason: "InvalidProviderToken"), hasOther: false)
        let held = try await world.routes.request(.get, "/health/ready")
        guard case .array(let gateways)? = held.json?["gateways"] else { throw NoList() }
        #expect(held.status == 200 && gateways.count == 1, "other apps are served")
        #expect(gateways[0]["app"] == .string("com.example.app") && gateways[0]["environment"] == .string("production"))
        #expect(gateways[0]["reason"] == .string("InvalidProviderToken"))
    }

    @Test func `the test environment shows the push without sending it`() async throws {
        let world = try await World(.test)
        let id = try await world.send()
        let queue = PushQueue(app: world.device.app, environment: .test)
        let now = world.domain.time.now()
        let leased = try await world.store.leasePushes(
            of: queue, in: .all, limit: 1, at: now, until: now.adding(seconds: 60))
        let push = try #require(leased.pushes.first)
        #expect(await world.domain.gateways.gateway(queue)?.send(push) == .taken)
        let list = try await world.routes.request(.get, World.app + "/pushes/test", key: world.routes.admin)
        guard case .array(let pushes)? = list.json?["pushes"] else { throw NoList() }
        #expect(pushes.count == 1 && pushes[0]["apnsID"] == .string(push.id.uuidText))
        #expect(pushes[0]["payload"]?["carillon"]?["kind"] == .string("wake"))
        #expect(!String(decoding: list.body, as: UTF8.self).contains("\(id)"), "a message's id is a capability")
    }

    @Test func `messages for a suspended device wait for it all the same`() async throws {
        let world = try await World()
        let registration = try await world.domain.devices.registration(of: world.device)
        #expect(registration.status == .registered)
        _ = try await world.domain.devices.suspend(world.device)
        let id = try await world.send()
        #expect(try await world.states(id) == [.string("suspended")])
        let inbox = world.domain.runtime.inbox
        #expect(try await inbox.waitingCount(device: world.device.serial) == 2, "the message, and that it is suspended")
    }
}
