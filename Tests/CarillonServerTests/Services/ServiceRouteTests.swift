import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// Services by HTTP: which devices can call which, how requests end with one result, and the refusals.
@Suite(.timeLimit(.minutes(5)))
struct ServiceRouteTests {
    private typealias World = ServiceWorld

    private func pair(_ world: ServiceWorld) async throws -> (consumer: World.Phone, provider: World.Phone) {
        let consumer = try await world.phone("com.example.mail", of: "ada")
        let provider = try await world.phone("com.example.files", of: "ada")
        try await world.share("house", "com.example.mail", "com.example.files")
        #expect(try await world.offer(provider).status == 204)
        return (consumer, provider)
    }

    // MARK: Discovery

    @Test func `a provider is found by devices of its user, in its app and in its realm, and by nobody else`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let sameApp = try await world.phone("com.example.files", of: "ada")
        let other = try await world.phone("com.example.mail", of: "bob")
        let nobody = try await world.phone("com.example.mail", of: nil)
        let elsewhere = try await world.phone("com.example.game", of: "ada")
        #expect(try await world.find(by: consumer) == [provider.id])
        #expect(try await world.find(by: sameApp) == [provider.id])
        #expect(try await world.find(by: provider).isEmpty, "itself")
        for stranger in [other, nobody, elsewhere] { #expect(try await world.find(by: stranger).isEmpty) }
        let refused = try await world.routes.request(.get, "/v1/services?app=com.example.files", key: nobody.credential)
        #expect(
            refused.status == 403 && refused["code"] == "call_forbidden",
            "a query for an app needs the permission to call it")
        #expect(try await world.find("?app=com.example.files", by: other).isEmpty)
        try await world.share("another house", "com.example.game")
        #expect(try await world.find(by: elsewhere).isEmpty)
        // A realm that ends, ends.
        let gone = try await world.routes.request(.delete, "/v1/apps/com.example.mail/realm", key: world.routes.admin)
        #expect(gone.status == 204)
        #expect(try await world.find(by: consumer).isEmpty)
    }

    @Test func `providers are found by service, version, app and device`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let found = [
            ("?service=com.example.transfer-file", 1), ("?service=com.example.transfer-file&version=1.0.0.0", 1),
            ("?service=com.example.transfer-file&version=2.0.0.0", 0), ("?service=com.example.other", 0),
            ("?app=com.example.files", 1), ("?app=com.example.mail", 0), ("?device=\(provider.id)", 1),
            ("?device=\(consumer.id)", 0),
        ]
        for (query, count) in found { #expect(try await world.find(query, by: consumer).count == count, "\(query)") }
        for query in ["?service=Com.Example", "?version=1.0", "?colour=red", "?service=a.b&version=01", "?device=x"] {
            let answer = try await world.routes.request(.get, "/v1/services\(query)", key: consumer.credential)
            #expect(answer.status == 400 || answer.status == 404, "\(query)")
            if query.contains("service=Com") || query.contains("version=01") {
                #expect(answer["code"] == "service_id_invalid" && answer["detail"].contains("character 1"), "\(query)")
            }
        }
        try await world.offer(provider, [("com.example.other", "3")])
        #expect(try await world.find("?service=com.example.transfer-file", by: consumer).isEmpty, "in place of the former")
        #expect(try await world.find("?service=com.example.other", by: consumer) == [provider.id])
        let withdrawn = try await world.routes.request(.delete, "/v1/device/services", key: provider.credential)
        #expect(withdrawn.status == 204)
        #expect(try await world.find(by: consumer).isEmpty)
    }

    @Test(arguments: [
        #"{"name":"","version":"1","services":[],"keys":KEYS}"#, #"{"version":"1","services":[],"keys":KEYS}"#,
        #"{"name":"a","version":"1","services":[{"id":"Upper.Case","version":"1"}],"keys":KEYS}"#,
        #"{"name":"a","version":"1","services":[{"id":"com.example","version":"1.0.0.0.0"}],"keys":KEYS}"#,
        #"{"name":"a","version":"1","services":[{"id":"com.example","version":"1","x":1}],"keys":KEYS}"#,
        #"{"name":"a","version":"1","services":[],"keys":{}}"#, #"{"name":"a","version":"1","services":[]}"#,
        #"{"name":"a","version":"1","services":{},"keys":KEYS}"#,
        #"{"name":"a\nb","version":"1","services":[],"keys":KEYS}"#,
        #"{"name":"a","version":"1","services":[],"keys":KEYS,"colour":1}"#,
    ])
    func `an offer that is none is refused`(_ body: String) async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let keys = String(decoding: World.keys().json.bytes, as: UTF8.self)
        let text = body.replacingOccurrences(of: "KEYS", with: keys)
        let answer = try await world.routes.request(.put, "/v1/device/services", key: provider.credential, text)
        #expect(answer.status == 400)
        #expect(try await world.find(by: consumer) == [provider.id], "the earlier profile remains")
        let many = (0...64).map { ("com.example.s\($0)", "1") }
        #expect(try await world.offer(provider, many).status == 400)
        #expect(try await world.offer(provider, many.dropLast()).status == 204)
    }

    @Test(arguments: [(128, 64, 204), (129, 64, 400), (128, 65, 400), (128, 0, 400)])
    func `the name and the version of an offer have limits in bytes`(name: Int, version: Int, status: Int) async throws {
        let world = try await ServiceWorld()
        let phone = try await world.phone("com.example.files", of: "ada")
        let keys = String(decoding: World.keys().json.bytes, as: UTF8.self)
        let (long, number) = (String(repeating: "ä", count: name / 2), String(repeating: "1", count: version))
        let text = #"{"name":"\#(long)\#(name % 2 == 0 ? "" : "a")","version":"\#(number)","services":[],"keys":\#(keys)}"#
        let answer = try await world.routes.request(.put, "/v1/device/services", key: phone.credential, text)
        #expect(answer.status == status, "\(answer["detail"])")
        #expect(try await stores.count(.serviceProviders, in: world.routes.store) == (status == 204 ? 1 : 0))
    }

    // MARK: Requests

    @Test func `a request reaches its provider, and its one result reaches its consumer`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let asked = try await world.ask(1, from: consumer, to: provider, ["foreground": .string("preferPeer")])
        #expect(asked.status == 201 && asked["id"] == World.id(1))
        #expect(asked["expiresAt"] == Timestamp3339.text(world.clock.now.adding(seconds: 3600).milliseconds))
        let events = try await world.events(of: provider)
        guard case .request(let header, let from, let expiresAt, let content)? = events.first, events.count == 1 else {
            Issue.record("\(events)")
            return
        }
        #expect(header.method.text == "transferFile" && header.foreground == .preferPeer && from == consumer.peer)
        #expect(expiresAt == world.clock.now.adding(seconds: 3600).milliseconds && content == World.content)

        let received = "/v1/services/requests/\(World.id(1))/received"
        for _ in 0..<2 {
            #expect(try await world.routes.request(.post, received, key: provider.credential).status == 204)
        }
        let id = try #require(ServiceRequestID(World.id(1)))
        #expect(try await world.events(of: consumer) == [.received(id)], "reported once")

        #expect(try await world.reply(1, by: consumer).code == "request_unknown", "not the consumer's to answer")
        #expect(try await world.reply(1, by: provider).status == 204)
        #expect(try await world.reply(1, by: provider).status == 204, "the same again")
        #expect(try await world.reply(1, by: provider, body: [9]).code == "request_finished")
        #expect(try await world.events(of: consumer) == [.reply(id, from: provider.peer, World.content(body: [8]))])
        for phone in [consumer, provider] { #expect(try await world.events(of: phone).isEmpty) }
        #expect(try await world.cancel(1, by: consumer).code == "request_finished")
    }

    @Test func `the same request again is the same, and another with its id is refused`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let second = try await world.phone("com.example.mail", of: "ada")
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201)
        let again = try await world.ask(1, from: consumer, to: provider)
        #expect(again.status == 201 && again["id"] == World.id(1))
        #expect(
            try await world.ask(1, from: consumer, to: provider, ["method": .string("other")]).code
                == "idempotency_key_reused")
        #expect(try await world.ask(1, from: second, to: provider).code == "idempotency_key_reused")
        #expect(try await world.events(of: provider).count == 1)
    }

    @Test func `a provider that may not be called is reported as not found`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let bobs = try await world.phone("com.example.files", of: "bob")
        try await world.offer(bobs)
        let nobody = try await world.phone("com.example.mail", of: nil)
        let silent = try await world.phone("com.example.files", of: "ada")
        #expect(try await world.ask(1, from: consumer, to: bobs).code == "application_not_found")
        #expect(try await world.ask(2, from: consumer, to: silent).code == "application_not_found")
        #expect(try await world.ask(3, from: consumer, to: consumer).code == "application_not_found")
        var absent = provider
        absent.id = World.id(99)
        let answers = [
            try await world.ask(4, from: consumer, to: absent), try await world.ask(4, from: consumer, to: bobs),
        ]
        #expect(answers[0].body == answers[1].body)
        var otherApp = provider
        otherApp.app = "com.example.mail"
        #expect(try await world.ask(5, from: consumer, to: otherApp).code == "application_not_found")
        #expect(try await world.ask(6, from: nobody, to: provider).code == "call_forbidden")
        #expect(
            try await world.ask(7, from: consumer, to: provider, ["service": .string("com.example.x")]).code
                == "service_not_found")
        #expect(
            try await world.ask(8, from: consumer, to: provider, ["version": .string("2.0.0.0")]).code
                == "service_version_not_found")
        #expect(
            try await world.ask(9, from: consumer, to: provider, ["keyID": .string("00112233445566ab")]).code
                == "provider_key_changed")
        for phone in [provider, bobs] { #expect(try await world.events(of: phone).isEmpty) }
        let admin = try await world.routes.request(
            .post, "/v1/services/requests", key: world.routes.admin, World.request(World.id(1), to: provider))
        #expect(admin.status == 401)
    }

    @Test(arguments: [
        ("id", JSONValue.string("x"), "field_invalid"), ("id", nil, "field_missing"),
        ("method", .string("a b"), "field_invalid"),
        ("deadline", .integer(0), "field_invalid"), ("deadline", .integer(604_801), "field_invalid"),
        ("deadline", .string("1"), "field_invalid"), ("foreground", .string("me"), "field_invalid"),
        ("suite", .string("none"), "field_invalid"), ("enc", .string("AAAA"), "field_invalid"),
        ("body", nil, "field_invalid"), ("body", .string("*"), "field_invalid"),
        ("bodyAttachment", .string("0"), "field_unknown"),
        ("files", .integer(33), "request_too_large"),
        ("fileBytes", .integer(4 << 30 + 1), "request_too_large"), ("files", .integer(-1), "request_too_large"),
        ("sender", .object([]), "field_invalid"), ("keyID", .string("../../etc/passwd"), "field_invalid"),
        ("service", .string("files"), "service_id_invalid"), ("version", .string("1.x"), "service_id_invalid"),
        ("device", .string("x"), "device_unknown"), ("app", nil, "field_missing"),
        ("colour", .string("red"), "field_unknown"),
        ("body", .string(Base64URL.encode(Array(repeating: 1, count: 32 << 10 + 1))), "request_too_large"),
    ])
    func `a request that is none is refused, and nothing is left`(
        _ name: String, _ value: JSONValue?, _ code: String
    ) async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        #expect(try await world.ask(1, from: consumer, to: provider, [name: value]).code == code)
        #expect(try await world.events(of: provider).isEmpty)
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201)
    }

    @Test func `the largest body fits`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let body = Array(repeating: UInt8(1), count: 32 << 10)
        #expect(
            try await world.ask(1, from: consumer, to: provider, ["body": .string(Base64URL.encode(body))]).status == 201)
        guard case .request(_, _, _, let content)? = try await world.events(of: provider).first else {
            Issue.record("nothing came")
            return
        }
        #expect(content.body == body)
    }

    // MARK: Ends

    @Test func `a deadline ends a request once, and a late reply is answered with that`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let id = try #require(ServiceRequestID(World.id(1)))
        _ = try await world.ask(1, from: consumer, to: provider, ["deadline": .integer(60)])
        world.clock.pass(59)
        try await world.sweep()
        #expect(try await world.events(of: consumer).isEmpty)
        world.clock.pass(1)
        try await world.sweep()
        try await world.sweep()
        #expect(try await world.events(of: consumer) == [.failed(id, code: "deadline_exceeded")])
        #expect(try await world.events(of: provider).isEmpty, "nothing is delivered late")
        #expect(try await world.reply(1, by: provider).code == "request_finished")
        let received = try await world.routes.request(
            .post, "/v1/services/requests/\(World.id(1))/received", key: provider.credential)
        #expect(received.status == 204)
        #expect(try await world.events(of: consumer).isEmpty)
        // It is remembered for a day.
        world.clock.pass(86_399)
        try await world.sweep()
        #expect(try await world.reply(1, by: provider).code == "request_finished")
        world.clock.pass(2)
        for retention in [nil, RetentionTime(now: world.clock.now, served: 86_400)] {
            #expect(try await world.routes.domain.services.sweep(forgetting: retention))
        }
        #expect(try await world.reply(1, by: provider).code == "request_finished", "the server was stopped for a while")
        try await world.sweep()
        #expect(try await world.reply(1, by: provider).code == "request_unknown")
    }

    @Test func `a request that is cancelled before its delivery is removed, and after it its provider is notified`()
        async throws
    {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let stranger = try await world.phone("com.example.mail", of: "ada")
        _ = try await world.ask(1, from: consumer, to: provider)
        #expect(try await world.cancel(1, by: stranger).code == "request_unknown")
        #expect(try await world.cancel(1, by: provider).code == "request_unknown")
        #expect(try await world.cancel(1, by: consumer).status == 204)
        #expect(try await world.events(of: provider).isEmpty)
        #expect(try await world.reply(1, by: provider).code == "request_finished")
        #expect(try await world.events(of: consumer).isEmpty, "the consumer that cancelled receives nothing more")

        _ = try await world.ask(2, from: consumer, to: provider)
        #expect(try await world.events(of: provider).count == 1)
        for _ in 0..<2 { #expect(try await world.cancel(2, by: consumer).code == "already_delivered") }
        let id = try #require(ServiceRequestID(World.id(2)))
        #expect(try await world.events(of: provider) == [.cancelled(id)], "notified once")
        #expect(try await world.reply(2, by: provider).status == 204, "its result comes all the same")
    }

    @Test func `all to one peer are cancelled, and those to others are not`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let second = try await world.phone("com.example.files", of: "ada")
        try await world.offer(second)
        _ = try await world.ask(1, from: consumer, to: provider)
        #expect(try await world.events(of: provider).count == 1)
        for number in 2...4 { _ = try await world.ask(number, from: consumer, to: provider) }
        _ = try await world.ask(5, from: consumer, to: second)
        let path = "/v1/services/requests?app=\(provider.app)&device=\(provider.id)"
        let all = try await world.routes.request(.delete, path, key: consumer.credential)
        #expect(all.status == 200 && all.json?["cancelled"] == .array((2...4).map { .string(World.id($0)) }))
        #expect(try await world.events(of: provider).count == 1, "that one is delivered, and not wanted any more")
        #expect(try await world.events(of: second).count == 1)
    }

    @Test func `the id of a request that was never delivered is kept for ten minutes`()
        async throws
    {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let rows = { try await stores.count(.serviceRequests, in: world.routes.store) }
        for number in 1...3 {
            _ = try await world.ask(number, from: consumer, to: provider, ["deadline": .integer(604_800)])
        }
        #expect(try await world.events(of: provider).count == 3)
        #expect(try await world.cancel(1, by: consumer).code == "already_delivered")
        #expect(try await world.reply(2, by: provider).status == 204)
        for number in 4...6 {
            _ = try await world.ask(number, from: consumer, to: provider, ["deadline": .integer(604_800)])
            #expect(try await world.cancel(number, by: consumer).status == 204)
        }
        #expect(try await world.cancel(4, by: consumer).code == "request_finished")
        world.clock.pass(599)
        try await world.sweep()
        #expect(try await rows() == 6)
        world.clock.pass(2)
        try await world.sweep()
        #expect(try await rows() == 3, "those that were delivered stay")
        #expect(try await world.cancel(4, by: consumer).code == "request_unknown")
    }

    @Test func `a provider that leaves, or belongs to another user, ends the requests that wait for it`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let second = try await world.phone("com.example.files", of: "ada")
        try await world.offer(second)
        _ = try await world.ask(1, from: consumer, to: provider)
        _ = try await world.ask(2, from: consumer, to: second)
        let deleted = try await world.routes.request(.delete, "/v1/device", key: provider.credential)
        #expect(deleted.status == 204)
        try await world.signIn("bob", on: second)
        #expect(try await world.reply(2, by: second).code == "request_finished", "it is not his to answer any more")
        try await world.sweep()
        let ids = try [1, 2].map { try #require(ServiceRequestID(World.id($0))) }
        let ends = try await world.events(of: consumer)
        #expect(ends.count == 2)
        #expect(ends.contains(.failed(ids[0], code: "application_not_found")))
        #expect(ends.contains(.failed(ids[1], code: "user_mismatch")))
        #expect(try await world.events(of: second).isEmpty, "events for the former user are not delivered to the next")
        #expect(try await world.find(by: consumer).isEmpty)
    }

    @Test func `a consumer that is removed, or belongs to another user, removes its requests`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        _ = try await world.ask(1, from: consumer, to: provider)
        _ = try await world.ask(2, from: consumer, to: provider)
        let first = try #require(try await world.frames(of: provider).first)
        try await world.acknowledge([first], by: provider)
        try await world.signIn("bob", on: consumer)
        #expect(try await world.reply(1, by: provider).code == "request_finished", "no consumer waits for it")
        #expect(try await world.cancel(1, by: consumer).code == "request_unknown", "it is not his")
        #expect(try await world.ask(1, from: consumer, to: provider).status != 201)
        try await world.sweep()
        let id = try #require(ServiceRequestID(World.id(1)))
        #expect(try await world.events(of: provider) == [.cancelled(id)], "the other was not delivered")
        for number in 1...2 { #expect(try await world.reply(number, by: provider).code == "request_finished") }
        #expect(try await world.events(of: consumer).isEmpty)
        try await world.sweep()
        #expect(try await world.events(of: provider).isEmpty)
    }

    @Test func `a request does not count when a device got another user since it was allowed`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let store = world.routes.store
        let id = try #require(ServiceRequestID(World.id(1)))
        let ada = try #require(UserID("ada"))
        func append(_ parties: RequestUsers, _ position: Int64) async throws -> InboxResult {
            let message = MessageID(position: position, secret: Bytes16(high: 1, low: 1))
            let request = ServiceRequest(
                id: id, envelope: message, consumer: consumer.serial, consumerApp: AppSerial(1), provider: provider.serial,
                providerApp: AppSerial(2), fingerprint: [1], expiresAt: world.clock.now.adding(seconds: 60))
            let envelope = Envelope(
                id: message, device: provider.serial, app: AppSerial(2), origin: request.origin,
                kind: .service(.request, body: [1]), acceptedAt: world.clock.now, expiresAt: request.expiresAt)
            return try await store.commit([
                .append(envelope, AppendRules(effects: [.request(.made(request, between: parties))]))
            ])[0]
        }
        let found = try #require(
            try await store.serviceProviders(for: consumer.serial, ServiceQuery(device: DeviceID(provider.id)), limit: 1))
        #expect(found.caller == .user(ada) && found.providers.first?.user == ada)
        let parties = RequestUsers(consumer: .user(ada), provider: ada)
        try await world.signIn("bob", on: provider)
        try await world.offer(provider)
        #expect(try await append(parties, 1) == .originGone)
        try await world.signIn("bob", on: consumer)
        #expect(try await append(parties, 2) == .originGone)
        try await world.signIn("ada", on: provider)
        try await world.offer(provider)
        #expect(try await append(parties, 3) == .originGone)
        try await world.signIn("ada", on: consumer)
        #expect(try await append(parties, 4) == .stored(replaced: nil))
    }

    // MARK: Bounds

    @Test func `a device has a limited number of requests without a result`() async throws {
        let world = try await ServiceWorld()
        let (consumer, provider) = try await pair(world)
        let most = ServiceRequest.mostOfConsumer
        for number in 1...most {
            #expect(try await world.ask(number, from: consumer, to: provider).status == 201)
            if number % 50 == 0 { _ = try await world.events(of: provider) }
        }
        #expect(try await world.ask(most + 1, from: consumer, to: provider).code == "quota_exceeded")
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201, "an existing request stays")
        let second = try await world.phone("com.example.mail", of: "ada")
        #expect(try await world.ask(most + 1, from: second, to: provider).status == 201, "another has its own")
        #expect(try await world.reply(1, by: provider).status == 204)
        #expect(try await world.ask(most + 2, from: consumer, to: provider).status == 201)
    }

    @Test func `a full inbox refuses requests and replies, and accepts reports of their end`() async throws {
        let world = try await ServiceWorld(inbox: InboxLimits(envelopes: 2))
        let (consumer, provider) = try await pair(world)
        let second = try await world.phone("com.example.mail", of: "ada")
        let third = try await world.phone("com.example.mail", of: "ada")
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201)
        #expect(try await world.ask(9, from: second, to: provider).status == 201)
        let refused = try await world.ask(3, from: third, to: provider, ["deadline": .integer(60)])
        #expect(refused.status == 429 && refused.code == "inbox_full")
        #expect(try await world.events(of: provider).count == 2)
        #expect(try await world.ask(2, from: consumer, to: provider).status == 201)
        #expect(try await world.events(of: provider).count == 1)
        #expect(try await world.ask(3, from: consumer, to: provider, ["deadline": .integer(60)]).status == 201)
        for number in 1...2 { #expect(try await world.reply(number, by: provider).status == 204) }
        let late = try await world.reply(3, by: provider)
        #expect(late.status == 429 && late.code == "inbox_full")
        world.clock.pass(60)
        try await world.sweep()
        let events = try await world.events(of: consumer)
        #expect(events.count == 3, "its end was reported")
        #expect(try await world.reply(3, by: provider).code == "request_finished")
    }

    @Test func `one consumer has a tenth of a provider's inbox`() async throws {
        let world = try await ServiceWorld(inbox: InboxLimits(envelopes: 50, bytes: 100_000))
        let (consumer, provider) = try await pair(world)
        let second = try await world.phone("com.example.mail", of: "ada")
        for number in 1...5 { #expect(try await world.ask(number, from: consumer, to: provider).status == 201) }
        let refused = try await world.ask(6, from: consumer, to: provider)
        #expect(refused.status == 429 && refused.code == "inbox_full" && refused.headers[.retryAfter] == "60")
        #expect(try await world.ask(1, from: consumer, to: provider).status == 201, "an existing request stays")
        #expect(try await world.ask(7, from: second, to: provider).status == 201, "another has its own")
        #expect(try await world.cancel(1, by: consumer).status == 204)
        #expect(try await world.ask(6, from: consumer, to: provider, ["deadline": .integer(60)]).status == 201)
        #expect(try await world.ask(8, from: consumer, to: provider).code == "inbox_full")
        // Expired requests do not count for the quota, also before they were swept.
        world.clock.pass(61)
        #expect(try await world.ask(8, from: consumer, to: provider).status == 201)
        #expect(try await world.events(of: provider).count == 6)
        // The limit of bytes, for any number of requests.
        let large = JSONValue.string(Base64URL.encode(Array(repeating: 7, count: 2400)))
        var answers: [Int] = []
        for number in 10...14 {
            answers.append(try await world.ask(number, from: consumer, to: provider, ["body": large]).status)
        }
        #expect(answers == [201, 201, 429, 429, 429])
        #expect(try await world.ask(20, from: consumer, to: provider).status == 201, "a small one fits")
    }

    @Test func `concurrent requests together use at most the tenth`() async throws {
        let world = try await ServiceWorld(inbox: InboxLimits(envelopes: 30))
        let (consumer, provider) = try await pair(world)
        let answers = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...12 {
                group.addTask { try await world.ask(number, from: consumer, to: provider).status }
            }
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(answers.sorted() == Array(repeating: 201, count: 3) + Array(repeating: 429, count: 9))
        #expect(try await world.events(of: provider).count == 3)
    }

    @Test func `requests come at a rate`() async throws {
        var rateLimits = RateLimits.Settings()
        rateLimits.serviceRequests = Rate(perSecond: 1, burst: 2)
        let world = try await ServiceWorld(rateLimits)
        let (consumer, provider) = try await pair(world)
        let codes = [
            try await world.ask(1, from: consumer, to: provider).status,
            try await world.ask(2, from: consumer, to: provider).status,
            try await world.ask(3, from: consumer, to: provider).status,
        ]
        #expect(codes == [201, 201, 429])
    }

    @Test func `realms are the operator's`() async throws {
        let world = try await ServiceWorld()
        let (consumer, _) = try await pair(world)
        let routes = world.routes
        let path = "/v1/apps/com.example.mail/realm"
        #expect(try await routes.request(.get, path, key: routes.admin).json?["realm"] == .string("house"))
        #expect(try await routes.request(.put, path, key: consumer.credential, #"{"realm":"x"}"#).status == 401)
        #expect(try await routes.request(.put, path, key: routes.admin, #"{"realm":""}"#).status == 400)
        let long = String(repeating: "x", count: 129)
        #expect(try await routes.request(.put, path, key: routes.admin, #"{"realm":"\#(long)"}"#).status == 400)
        let absent = try await routes.request(
            .put, "/v1/apps/com.example.none/realm", key: routes.admin, #"{"realm":"x"}"#)
        #expect(absent.code == "app_unknown")
    }
}
