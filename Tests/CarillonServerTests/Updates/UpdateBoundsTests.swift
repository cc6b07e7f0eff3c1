import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The limits of the number of updates, and the behaviour beyond them.
struct UpdateBoundsTests {
    private func publish(_ world: UpdateWorld, _ body: String) async throws -> RouteFixture.Answer {
        try await world.routes.request(.post, "/v1/updates", key: world.sender, body)
    }

    @Test func `a thousand updates that a device defers delay no message, and are delivered again`() async throws {
        let world = try await UpdateWorld()
        for _ in 0..<1000 { try await world.publish("popup", #"{"style":"important","title":"t"}"#) }
        var evaluated: [UpdateWorld.Copy] = []
        for _ in 0..<3 { evaluated += try await world.poll(nil, #""max":500"#) }
        #expect(Set(evaluated.map(\.update)).count == 1000)
        for start in stride(from: 0, to: 1000, by: 200) {
            let part = evaluated[start..<start + 200].map {
                #"{"update":"\#($0.update)","entry":\#($0.entry),"result":"deferred","until":"answer"}"#
            }
            try await world.ask(nil, #""results":[\#(part.joined(separator: ","))]"#)
        }
        let domain = world.routes.domain
        let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
        let device = try await domain.devices.find(try #require(DeviceID(world.first.id)))
        let channel = try await domain.channels.register(id, device: device.serial, name: nil, vapidKey: nil).channel
        _ = try await domain.publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 60), to: channel)
        guard case .array(let envelopes)? = try await world.ask().json?["envelopes"] else { return #expect(Bool(false)) }
        #expect(envelopes.map { $0["messageType"] } == [.string("notification")])
        world.advance(seconds: 86_400)
        try await world.sweep()
        var again = 0
        for _ in 0..<3 { again += try await world.poll(nil, #""max":500"#).count }
        #expect(again == 1000)
    }

    @Test func `an app has a limited number of live updates, and of those without an index`() async throws {
        let world = try await UpdateWorld(limits: UpdateLimits(live: 4, unindexed: 2))
        for _ in 0..<2 { try await world.publish(audience: "level > 3") }
        var answer = try await publish(world, #"{"kind":"definitions","audience":"level > 4"}"#)
        #expect(answer.status == 409 && answer.code == "updates_too_many")
        // These an index finds, or there is nothing to find.
        let indexed = try await world.publish(audience: "level > 4 && region == 'north'")
        try await world.publish()
        answer = try await publish(world, #"{"kind":"definitions"}"#)
        #expect(answer.status == 409 && answer.code == "updates_too_many")
        // It replaces one.
        answer = try await publish(world, #"{"kind":"definitions","supersedes":"\#(indexed)"}"#)
        #expect(answer.status == 201)
        try await world.withdraw(answer["id"])
        #expect(try await publish(world, #"{"kind":"definitions"}"#).status == 201)
    }

    @Test func `three polls of up to 60 updates return 150 updates in the order of publication`() async throws {
        let world = try await UpdateWorld()
        var updates: [String] = []
        for _ in 0..<150 { updates.append(try await world.publish()) }
        var given: [String] = []
        for _ in 0..<3 { given += try await world.poll(nil, #""max":60"#).map(\.update) }
        #expect(given == updates)
        #expect(try await world.poll().isEmpty)
    }

    @Test func `ended updates are known for a limited time, and up to a limit of an app`() async throws {
        let world = try await UpdateWorld(limits: UpdateLimits(ended: 2, endedSeconds: 1000))
        var updates: [String] = []
        for _ in 0..<4 { updates.append(try await world.publish()) }
        _ = try await world.poll()
        for update in updates[..<3] { try await world.withdraw(update) }
        try await world.sweep()
        var known: [Int] = []
        for update in updates {
            known.append(try await world.routes.request(.get, "/v1/updates/\(update)", key: world.sender).status)
        }
        #expect(known == [404, 200, 200, 200])
        world.advance(seconds: 1000)
        let afterPause = RetentionTime(now: world.now, served: 999)
        try await world.routes.domain.updateDelivery.sweep(forgetting: afterPause)
        #expect(
            try await stores.count(.updates, in: world.routes.store) == 3, "the server was not in service for so long")
        world.advance(seconds: 60)
        try await world.sweep()
        #expect(try await stores.count(.updates, in: world.routes.store) == 1)
        #expect(try await stores.count(.completions, in: world.routes.store) == 1)
        // Their bodies go with the next sweep of the inboxes.
        _ = try await world.routes.store.sweep(at: .never, forgetting: .uninterrupted(at: .never), limit: 1000)
        #expect(try await stores.count(.sharedBodies, in: world.routes.store) <= 1)
    }

    @Test func `an update that does not fit into a full inbox is delivered a minute later`() async throws {
        let store = try await stores.open(.init(inbox: InboxLimits(envelopes: 1)))
        let world = try await UpdateWorld(store: store)
        let first = try await world.publish()
        var copies = try await world.poll()
        try await world.ask()
        try await world.publish()
        try await world.ask(nil, #""max":0"#)
        // The inbox is full of the second, and the first does not fit once more.
        #expect(try await world.poll(nil, UpdateWorld.result(copies[0], "failed") + #","max":0"#).isEmpty)
        #expect(try await world.counts(first) == ["failed": 1])
        try await world.sweep()
        copies = try await world.poll()
        #expect(copies.count == 1 && copies[0].update != first)
        try await world.ask()
        world.advance(seconds: 59)
        #expect(try await world.poll().isEmpty)
        world.advance(seconds: 1)
        #expect(try await world.poll().map(\.update) == [first])
    }

    @Test func `when an app declares other parameters its updates are evaluated anew`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north","level":1"#))
        try await world.declare(#"{"parameters":{"level":"int"}}"#)
        let answer = try await publish(world, #"{"kind":"definitions","audience":"region == 'north'"}"#)
        #expect(answer.code == "audience_invalid")
        try await world.declare(UpdateWorld.parameters)
        let update = try await world.publish(audience: "region == 'north'")
        try await world.declare(#"{"parameters":{"level":"int"}}"#)
        #expect(try await world.poll().isEmpty)
        try await world.declare(UpdateWorld.parameters)
        #expect(try await world.poll().map(\.update) == [update])
    }

    @Test(arguments: [
        #""text":"\#(String(repeating: "t", count: 1024))""#,
        #""many":[\#(repeatElement(#""e""#, count: 100).joined(separator: ","))]"#,
    ])
    func `a value has its bound`(value: String) async throws {
        let world = try await UpdateWorld()
        try await world.declare(#"{"parameters":{"text":"string","many":"strings"}}"#)
        try await world.ask(nil, UpdateWorld.parameters(value))
        let longer = value.hasSuffix("]") ? value.dropLast() + #","e"]"# : value.dropLast() + #"t""#
        try await world.ask(nil, UpdateWorld.parameters(String(longer), revision: "2"), expecting: 400)
    }

    @Test func `all values together have a limit`() async throws {
        let world = try await UpdateWorld()
        let names = (0..<17).map { "p\($0)" }
        try await world.declare(#"{"parameters":{\#(names.map { #""\#($0)":"string""# }.joined(separator: ","))}}"#)
        func values(_ count: Int) -> String {
            names.prefix(count).map { #""\#($0)":"\#(String(repeating: "v", count: 1000))""# }.joined(separator: ",")
        }
        try await world.ask(nil, UpdateWorld.parameters(values(16)))
        try await world.ask(nil, UpdateWorld.parameters(values(17), revision: "2"), expecting: 400)
    }

    @Test(arguments: [
        (#"{"parameters":{"user":"string"}}"#, "none of"), (#"{"parameters":{"1a":"string"}}"#, "digit"),
        (#"{"parameters":{"in":"string"}}"#, "name"), (#"{"parameters":{"a":"text"}}"#, "string, int"),
        (#"{"parameters":{"a":"int","a":"int"}}"#, "twice"), (#"{"parameters":[]}"#, "types"),
        (
            #"{"parameters":{\#((0...100).map { #""p\#($0)":"int""# }.joined(separator: ","))}}"#, "at most 100"
        ),
    ])
    func `parameters that cannot be declared are refused, and those before stay`(rules: String, why: String) async throws {
        let world = try await UpdateWorld()
        let answer = try await world.routes.request(
            .put, "/v1/apps/com.example.app/parameters", key: world.routes.admin, rules)
        #expect(answer.status == 400 && answer.code == "parameter_rules_invalid")
        #expect(answer["detail"].contains(why), "\(answer["detail"])")
        try await world.publish(audience: "region == 'north'")
    }

    @Test(
        arguments: [
            ("region == '" + String(repeating: "x", count: 49_140) + "'", nil),
            ("region == '" + String(repeating: "x", count: 49_141) + "'", "field_invalid"),
            ("tags.exists(a, tags.exists(b, a == b))", "audience_invalid"), ("tags.exists(a, a == 'x')", nil),
            ("region.matches('(a*)*b')", "audience_invalid"), ("level", "audience_invalid"),
            ("unknown == 1", "audience_invalid"),
        ] as [(String, String?)])
    func `an audience has a limit in bytes and in cost`(audience: String, code: String?) async throws {
        let world = try await UpdateWorld()
        let body = #"{"kind":"definitions","audience":"\#(audience)"}"#
        let answer = try await publish(world, body)
        #expect(answer.code == code, "\(answer["detail"])")
        let asked = try await world.routes.request(
            .post, "/v1/updates/explain", key: world.sender, #"{"audience":"\#(audience)"}"#)
        #expect(asked.code == code)
    }

    @Test func `the audiences of live updates have a common limit in bytes`() async throws {
        let world = try await UpdateWorld(limits: UpdateLimits(unindexed: 0, audienceBytes: 40))
        func body(_ audience: String, _ more: String = "") -> String {
            #"{"kind":"definitions","audience":"\#(audience)"\#(more)}"#
        }
        let first = try await world.publish(audience: "'a' in tags || 'b' in tags")
        let answer = try await publish(world, body("region == 'north'"))
        #expect(answer.status == 409 && answer.code == "updates_too_many")
        #expect(answer["detail"].contains("40 bytes"))
        #expect(try await publish(world, body("level == 1")).status == 201)
        #expect(try await publish(world, body("region == 'north'", #","supersedes":"\#(first)""#)).status == 201)
    }

    @Test func `an update that was paused is resumed only where its audience has room`() async throws {
        let world = try await UpdateWorld(limits: UpdateLimits(audienceBytes: 40))
        func resume(_ update: String) async throws -> RouteFixture.Answer {
            try await world.routes.request(.post, "/v1/updates/\(update)/resume", key: world.sender)
        }
        let paused = try await world.publish(audience: "'a' in tags || 'b' in tags")
        try await stores.pauseUpdates(in: world.routes.store)
        let other = try await world.publish(audience: "region == 'north'")
        let answer = try await resume(paused)
        #expect(answer.status == 409 && answer.code == "updates_too_many" && answer["detail"].contains("40 bytes"))
        try await world.withdraw(other)
        #expect(try await resume(paused).status == 200)
    }

    @Test(arguments: [(23, 0), (24, 1)])
    func `a device fetches everything if more than 1 MiB of audiences would decide the missed updates`(
        updates: Int, resyncs: Int
    ) async throws {
        let world = try await UpdateWorld()
        _ = try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#))
        world.advance(seconds: 6)
        try await world.sweep()
        let audience = "region == '" + String(repeating: "n", count: 45_000) + "'"
        for _ in 0..<updates { try await world.publish("content", nil, audience: audience, #","ttl":60"#) }
        world.advance(seconds: 61)
        try await world.sweep()
        #expect(try await world.poll().count == resyncs)
    }

    @Test func `a validation returns the number of matching devices or an error in the audience, and publishes nothing`()
        async throws
    {
        let world = try await UpdateWorld()
        for number in 0..<6 {
            let device = try await world.device()
            try await world.ask(device, UpdateWorld.parameters(#""level":\#(number)"#))
        }
        func validate(_ audience: String) async throws -> JSONValue? {
            try await world.routes.request(
                .post, "/v1/updates?validate=true", key: world.sender, #"{"kind":"definitions","audience":"\#(audience)"}"#
            ).json
        }
        let some = try await validate("level >= 4")
        #expect(some?["count"] == .integer(2) && some?["exact"] == .bool(true))
        let bad = try await validate("level >= 'x'")
        #expect(bad?["code"] == .string("audience_invalid"))
        #expect(try await stores.count(.updates, in: world.routes.store) == 0)
    }

    @Test func `the devices of an update are listed in pages, and can be filtered by state`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        for _ in 0..<5 { _ = try await world.poll(try await world.device()) }
        let copies = try await world.poll()
        try await world.ask(nil, UpdateWorld.result(copies[0]))
        var devices = 0
        var next = ""
        repeat {
            let page = try await world.routes.request(
                .get, "/v1/updates/\(update)/devices?limit=2\(next.isEmpty ? "" : "&after=\(next)")", key: world.sender)
            guard case .array(let some)? = page.json?["devices"] else { break }
            devices += some.count
            next = page["next"]
        } while !next.isEmpty
        #expect(devices == 6)
        let done = try await world.routes.request(.get, "/v1/updates/\(update)/devices?state=done", key: world.sender)
        guard case .array(let some)? = done.json?["devices"] else { return #expect(Bool(false)) }
        #expect(some.map { $0["device"] } == [.string(world.first.id)])
        #expect(
            try await world.routes.request(.get, "/v1/updates/\(update)/devices?state=lost", key: world.sender).status == 400
        )
    }

    @Test func `a device without requests for 6 seconds takes no memory after a sweep`() async throws {
        let world = try await UpdateWorld()
        for _ in 0..<20 { try await world.ask(try await world.device()) }
        #expect(world.routes.domain.updateDelivery.rememberedDevices == 20)
        world.advance(seconds: 6)
        try await world.sweep()
        #expect(world.routes.domain.updateDelivery.rememberedDevices == 0)
    }
}
