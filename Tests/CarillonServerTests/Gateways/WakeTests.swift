import CarillonAPNsSimulator
import CarillonBasics
import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// Messages to devices that sleep, as Apple's service sees them.
@Suite(.timeLimit(.minutes(5)))
struct WakeTests {
    private func handed(_ id: MessageID, _ device: Device, _ world: GatewayWorld) async throws {
        try await eventually { try await world.standings(id, of: device).contains(.state(.handed)) }
    }

    @Test func `a device that sleeps is woken by a push without content`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let device = try await world.device()
            let id = try await world.send(to: device)
            try await handed(id, device, world)
            let push = try #require(world.shown().first)
            #expect(push.pushType == "background" && push.priority == 5 && push.topic == "com.example.app")
            #expect(
                String(decoding: push.payload, as: UTF8.self)
                    == #"{"aps":{"content-available":1},"carillon":{"kind":"wake"}}"#)
            #expect(push.collapseID == "carillon")
            #expect(push.expiresAt.map { $0 / 1000 } == world.now.adding(seconds: 2_500_000).seconds)
            #expect(try await world.pushes(for: id, of: device).first?.id?.uuidText == push.id)
        }
    }

    @Test func `ten messages in twenty minutes make one wake, and the first after them another`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let device = try await world.device()
            for number in 0..<10 {
                let id = try await world.send(to: device)
                if number == 0 { try await handed(id, device, world) }
                try await world.acknowledge(id, by: device)
                world.advance(seconds: 119)
            }
            #expect(world.shown().count == 1)
            world.advance(seconds: 20)
            let id = try await world.send(to: device)
            try await handed(id, device, world)
            #expect(world.simulator.totals.requests == 2)
        }
    }

    @Test func `a wake that a reconnect overtook is not sent`() async throws {
        try await GatewayWorld.run { world in
            let device = try await world.device()
            let id = try await world.send(to: device)
            try await world.acknowledge(id, by: device)
            try await world.setCredentials()
            let second = try await world.device("00ff00aa")
            let other = try await world.send(to: second)
            try await handed(other, second, world)
            #expect(world.simulator.totals.requests == 1, "nothing for the first")
        }
    }

    @Test func `credentials that are removed push no more`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let device = try await world.device()
            let queue = PushQueue(app: device.app, environment: .production)
            #expect(world.domain.gateways.isConfigured(queue))
            try await world.domain.gateways.remove(of: try #require(AppID("com.example.app")), for: .production)
            #expect(!world.domain.gateways.isConfigured(queue))
        }
    }

    @Test func `without credentials a push waits, and is sent when they are set`() async throws {
        try await GatewayWorld.run { world in
            let device = try await world.device()
            let id = try await world.send(to: device)
            let record = try #require(try await world.pushes(for: id, of: device).first)
            #expect(
                PushBody(record, isConfigured: world.domain.gateways.isConfigured(try #require(record.queue))).state
                    == "unconfigured")
            try await world.setCredentials()
            try await handed(id, device, world)
        }
    }

    @Test func `an urgent message shows the app's text, and its identifiers are hashes`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let text = try AlertText(
                .object([.init(name: "titleKey", value: .string("NEW")), .init(name: "sound", value: .string("default"))]))
            try await world.domain.gateways.setAlert(text, of: world.app)
            let device = try await world.device()
            let id = try await world.send(to: device, urgency: .high)
            try await handed(id, device, world)
            let push = try #require(world.shown().first)
            #expect(push.pushType == "alert" && push.priority == 10)
            let payload = try #require(JSONValue(parsing: push.payload))
            #expect(payload["aps"]?["alert"]?["title-loc-key"] == .string("NEW"))
            #expect(payload["aps"]?["mutable-content"] == .integer(1))
            #expect(payload["carillon"]?["message"] == .string(MessageHash.text(of: id.description)))
            #expect(payload["carillon"]?["body"] == nil, "a body that is not encrypted is not pushed")
            #expect(!String(decoding: push.payload, as: UTF8.self).contains(id.description))
            #expect(push.collapseID.map { !id.description.contains($0) && $0.utf8.count == 32 } == true)
            // A message that replaces another one does so on the screen, too.
            world.advance(seconds: 2)
            let first = try await world.send(to: device, urgency: .high, topic: "t")
            try await handed(first, device, world)
            world.advance(seconds: 2)
            let second = try await world.send(to: device, urgency: .high, topic: "t")
            try await handed(second, device, world)
            let shown = world.shown()
            #expect(shown.count == 2, "the second took the place of the first")
            #expect(Set(shown.map(\.collapseID)).count == 2, "and of no other")
        }
    }

    @Test func `an encrypted message travels with its alert as long as the payload has 4096 bytes`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let text = try AlertText(.object([.init(name: "title", value: .string("News"))]))
            try await world.domain.gateways.setAlert(text, of: world.app)
            let device = try await world.device()
            func payload(_ count: Int, _ coding: ContentCoding.Name = .aes128gcm) async throws -> [UInt8] {
                let id = try await world.send(
                    Array(repeating: 7, count: count), to: device, urgency: .high, coding: coding)
                try await handed(id, device, world)
                world.advance(seconds: 2)
                return try #require(world.shown().last).payload
            }
            // The promise: 2400 bytes of plain text, with the 103 that aes128gcm adds.
            let promised = try await payload(2503)
            #expect(
                JSONValue(parsing: promised)?["carillon"]?["body"]
                    == .string(Base64URL.encode(Array(repeating: 7, count: 2503))))
            #expect(JSONValue(parsing: promised)?["carillon"]?["coding"] == .string("aes128gcm"))
            // Three bytes more make four characters more, one byte more two, and two three.
            func characters(_ count: Int) -> Int { Base64URL.encode([UInt8](repeating: 7, count: count)).utf8.count }
            let room = 4096 - promised.count + characters(2503)
            let size = (2503...4096).last { characters($0) <= room } ?? 0
            let largest = try await payload(size)
            #expect(largest.count == 4096 && JSONValue(parsing: largest)?["carillon"]?["body"] != nil)
            let tooLarge = try await payload(size + 1)
            #expect(tooLarge.count < 1000 && JSONValue(parsing: tooLarge)?["carillon"]?["body"] == nil)
            #expect(JSONValue(parsing: tooLarge)?["carillon"]?["message"] != nil)
        }
    }

    @Test(arguments: ["x", "\"", "\u{1}", "\u{2028}", "\u{1F514}"])
    func `the largest text of an alert leaves room for a message of 2400 bytes`(_ character: String) async throws {
        func text(_ count: Int) throws -> AlertText {
            let half = JSONValue.string(String(repeating: character, count: count / 2))
            return try AlertText(
                .object([
                    .init(name: "title", value: half), .init(name: "body", value: half),
                    .init(name: "badge", value: .string("auto")),
                ]))
        }
        let accepted = (2...512).filter { (try? text($0)) != nil }
        #expect(accepted == Array(2...(accepted.last ?? 0)) && (accepted.last ?? 0) >= 70)
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            try await world.domain.gateways.setAlert(try text(accepted.last ?? 0), of: world.app)
            let device = try await world.device()
            let id = try await world.send(
                Array(repeating: 7, count: 2503), to: device, urgency: .high, coding: .aes128gcm)
            try await handed(id, device, world)
            let payload = try #require(world.shown().last).payload
            #expect(JSONValue(parsing: payload)?["carillon"]?["body"] != nil && payload.count <= 4096)
        }
    }

    @Test func `an app that was deleted has no gateway any more`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let serial = try #require(try await world.domain.apps.serial(of: world.app))
            let queue = PushQueue(app: serial, environment: .production)
            try await eventually { world.domain.gateways.isConfigured(queue) }
            _ = world.domain.gateways.gateway(PushQueue(app: serial, environment: .test))
            await world.domain.gateways.forget(serial)
            #expect(!world.domain.gateways.isConfigured(queue) && world.domain.gateways.gateway(queue) == nil)
        }
    }

    @Test func `the test environment opens no connection, and remembers a hundred payloads`() async throws {
        try await GatewayWorld.run { world in
            let device = try await world.device("aa", .test)
            let id = try await world.send(to: device)
            try await handed(id, device, world)
            let app = try #require(try await world.domain.apps.serial(of: world.app))
            #expect(world.domain.gateways.testPushes(of: app).map(\.device) == [device.serial])
            for number in 0..<120 {
                let other = try await world.device("aa\(String(1000 + number))", .test)
                _ = try await world.send(to: other)
            }
            try await eventually {
                world.domain.outbox.underWay == 0 && world.domain.gateways.testPushes(of: app).count == 100
            }
            #expect(world.simulator.totals.requests == 0)
            await #expect(throws: Refusal.self) { try await world.setCredentials(.test) }
        }
    }
}
