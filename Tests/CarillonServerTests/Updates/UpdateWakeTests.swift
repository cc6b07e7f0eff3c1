import CarillonBasics
import CarillonWire
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// Sleeping devices are woken for their updates, and others are not.
@Suite(.timeLimit(.minutes(5)))
struct UpdateWakeTests {
    private static let north = UpdateWorld.parameters(#""region":"north""#)

    /// A device that reported its location, can receive pushes, and sleeps.
    private func sleeper(_ world: UpdateWorld, _ token: String, _ parameters: String = north) async throws
        -> UpdateWorld.Device
    {
        let device = try await world.device()
        let answer = try await world.routes.request(
            .put, "/v1/device", key: device.credential,
            #"{"platform":"apple","pushToken":"\#(token)","environment":"production"}"#)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        try await world.ask(device, parameters)
        return device
    }

    /// No device is connected any more.
    private func sleep(_ world: UpdateWorld) async throws {
        world.advance(seconds: 10)
        try await world.sweep()
    }

    private func wakes(_ world: UpdateWorld) async throws -> Int { try await stores.count(.wakes, in: world.routes.store) }

    /// Evaluates all devices.
    private func wakeAll(_ world: UpdateWorld) async throws -> Int {
        var steps = 0
        while try await world.routes.domain.updateDelivery.wakeSome() { steps += 1 }
        return steps
    }

    @Test func `a sleeping device that matches is woken, once, and finds the update`() async throws {
        let world = try await UpdateWorld()
        let device = try await sleeper(world, "0001")
        _ = try await sleeper(world, "0002", UpdateWorld.parameters(#""region":"south""#))
        // This one cannot receive pushes.
        try await world.ask(world.first, Self.north)
        try await sleep(world)
        let quiet = try await world.publish(audience: "region == 'north'")
        #expect(try await wakeAll(world) == 0)
        let update = try await world.publish(audience: "region == 'north'", #","wake":"match""#)
        #expect(try await wakeAll(world) == 1)
        #expect(try await wakes(world) == 1)
        #expect(try await world.counts(update) == ["waiting": 1])
        #expect(try await world.counts(quiet) == ["waiting": 1], "the log is evaluated in its order")
        #expect(try await wakeAll(world) == 0, "all devices were evaluated")
        let copies = try await world.poll(device)
        #expect(copies.map(\.update) == [quiet, update])
        #expect(try await world.poll(world.first).map(\.update) == [quiet, update])
    }

    @Test func `many devices are evaluated a page at a time, and after a stop the remaining ones`() async throws {
        let world = try await UpdateWorld()
        for number in 0..<5 { _ = try await sleeper(world, "aa" + String(1000 + number)) }
        try await sleep(world)
        let update = try await world.publish("definitions", "{}", #","wake":"match""#)
        #expect(try await world.routes.domain.updateDelivery.wakeSome(bindings: 2))
        #expect(try await world.counts(update) == ["waiting": 2])
        #expect(try await world.routes.domain.updateDelivery.wakeSome(bindings: 2))
        #expect(try await world.counts(update) == ["waiting": 4])
        #expect(try await wakeAll(world) == 1)
        #expect(try await world.counts(update) == ["waiting": 5])
        #expect(try await wakes(world) == 5)
    }

    @Test func `a sleeping device is woken although its location is forgotten meanwhile`() async throws {
        let world = try await UpdateWorld()
        _ = try await sleeper(world, "0001", UpdateWorld.parameters(#""place":{"latitude":48.2,"longitude":16.4}"#))
        let update = try await wake(in: world) {
            try await world.routes.store.forgetLocations(in: .all, before: world.now, limit: 9)
        }
        #expect(try await world.counts(update) == ["waiting": 1])
        #expect(try await wakes(world) == 1)
    }

    @Test func `a sleeping device is woken by the rules of the time of its turn`() async throws {
        let world = try await UpdateWorld()
        let device = try await sleeper(world, "0001")
        let update = try await wake(in: world) { try await world.declare(#"{"parameters":{"region":"string"}}"#) }
        #expect(try await world.counts(update) == ["waiting": 1])
        let (store, domain) = (world.routes.store, world.routes.domain)
        let id = try #require(DeviceID(device.id))
        let found = try #require(try await store.device(id))
        let version = try await domain.updateDelivery.logs.log(of: found.app).version
        #expect(try await store.presentBinding(of: found.serial)?.cursor.rules == version)
    }

    /// Publishes an update that wakes the only sleeping device, and makes a change while the wake waits for its turn.
    private func wake(in world: UpdateWorld, while change: () async throws -> Void) async throws -> String {
        try await sleep(world)
        let delivery = world.routes.domain.updateDelivery
        let app = try #require(AppID("com.example.app"))
        let serial = try #require(try await world.routes.domain.apps.serial(of: app))
        let bindings = try await world.routes.store.bindings(of: serial, after: BindingSerial(0), limit: 9)
        let binding = try #require(bindings.first?.binding.serial)
        #expect(bindings.count == 1)
        let update = try await world.publish("definitions", "{}", #","wake":"match""#)
        let waking = try await delivery.turns.take(binding) {
            let waking = Task { try await delivery.wakeSome() }
            try await eventually { delivery.turns.waiters(for: binding) == 1 }
            try await change()
            return waking
        }
        #expect(try await waking.value)
        return update
    }

    @Test func `for a withdrawn update no device is woken any more, and one app does not wait for another`() async throws {
        let world = try await UpdateWorld()
        _ = try await sleeper(world, "0001")
        try await sleep(world)
        let first = try await world.publish("definitions", "{}", #","wake":"match""#)
        let second = try await world.publish("definitions", "{}", #","wake":"match""#)
        try await world.withdraw(first)
        #expect(try await wakeAll(world) == 1)
        #expect(try await world.counts(first) == [:])
        #expect(try await world.counts(second) == ["waiting": 1])
        let bad = try await world.routes.request(
            .post, "/v1/updates", key: world.sender, #"{"kind":"definitions","wake":"always"}"#)
        #expect(bad.status == 400 && bad.code == "field_invalid")
    }

    @Test func `an app whose rules cannot be read delays no other's wakes`() async throws {
        let world = try await UpdateWorld()
        _ = try await sleeper(world, "0001")
        try await sleep(world)
        let domain = world.routes.domain
        let other = try #require(AppID("com.example.other"))
        _ = try await domain.apps.create(other)
        let serial = try #require(try await domain.apps.serial(of: other))
        let rules = AppDocument.Key(.parameterRules, of: serial)
        _ = try await world.routes.store.putDocument(Array(#"{"parameters":7}"#.utf8), as: rules, at: world.now)
        let definition = Update.Definition(
            kind: .definitions, payload: Array("{}".utf8), audience: nil, mode: .once, ttlSeconds: 3600, orderKey: nil,
            wakes: true, supersedes: nil)
        _ = try await domain.updates.publish(definition, of: serial, by: KeyID(1))
        let update = try await world.publish("definitions", "{}", #","wake":"match""#)
        #expect(try await domain.updateDelivery.wakeSome())
        #expect(try await world.counts(update) == ["waiting": 1])
        await #expect(throws: (any Error).self) { try await domain.updateDelivery.wakeSome() }
    }

    @Test func `a device that apps' rules suspended, or that is pushed to no more, is left alone`() async throws {
        let world = try await UpdateWorld()
        let device = try await sleeper(world, "0001")
        _ = try await world.routes.request(.put, "/v1/device", key: device.credential, "{}")
        try await sleep(world)
        let update = try await world.publish("definitions", "{}", #","wake":"match""#)
        #expect(try await wakeAll(world) == 1)
        #expect(try await world.counts(update) == [:])
        #expect(try await wakes(world) == 0)
    }

    @Test func `an explanation lists the devices of an audience, and why others do not match`() async throws {
        let world = try await UpdateWorld()
        let north = try await world.device()
        let south = try await world.device()
        try await world.ask(north, UpdateWorld.parameters(#""region":"north","level":3"#))
        try await world.ask(south, UpdateWorld.parameters(#""region":"south","level":3"#))
        try await world.ask(world.first)
        func explain(_ body: String) async throws -> RouteFixture.Answer {
            try await world.routes.request(.post, "/v1/updates/explain", key: world.sender, body)
        }
        let audience = #""audience":"region == 'north' && level > 2""#
        var answer = try await explain("{\(audience)}")
        #expect(answer.status == 200)
        #expect(answer.json?["count"] == .integer(1) && answer.json?["looked"] == .integer(3))
        #expect(answer.json?["exact"] == .bool(true))
        guard case .array(let errors)? = answer.json?["errors"], errors.count == 1 else {
            return #expect(Bool(false), "\(String(decoding: answer.body, as: UTF8.self))")
        }
        #expect(errors[0]["count"] == .integer(1))
        guard case .string(let why)? = errors[0]["error"] else { return #expect(Bool(false)) }
        #expect(why.contains("(region)") || why.contains("(level)"), "\(why)")

        answer = try await explain(#"{\#(audience),"device":"\#(north.id)"}"#)
        #expect(answer.json?["matches"] == .bool(true))
        #expect(answer.json?["says"] == .array([.string("level"), .string("region")]))
        answer = try await explain(#"{\#(audience),"device":"\#(south.id)"}"#)
        #expect(answer.json?["matches"] == .bool(false) && answer.json?["error"] == nil)
        answer = try await explain(#"{\#(audience),"device":"\#(world.first.id)"}"#)
        #expect(answer.json?["matches"] == .bool(false) && answer.json?["error"] != nil)
        let silent = try await world.device()
        answer = try await explain(#"{\#(audience),"device":"\#(silent.id)"}"#)
        #expect(answer.json?["matches"] == .bool(false) && answer.json?["error"] != nil)

        try await sleep(world)
        let update = try await world.publish(audience: "region == 'south'")
        answer = try await explain(#"{"update":"\#(update)"}"#)
        #expect(answer.json?["count"] == .integer(1))
        #expect(try await world.counts(update) == [:], "nothing was sent")
        #expect(try await explain(#"{"audience":"region ="}"#).code == "audience_invalid")
        #expect(try await explain(#"{"update":"\#(update)",\#(audience)}"#).code == "field_invalid")
        #expect(try await explain(#"{"device":"\#(UpdateID(Bytes16(high: 1, low: 2)))"}"#).status == 404)
    }

    @Test func `errors are distinguished up to a number`() {
        var report = AudienceReport()
        for number in 0..<30 { report.note(.error("error \(number)")) }
        report.note(.belongs)
        report.note(.stranger)
        report.note(.error("error 1"))
        #expect(report.errors.count == 21 && report.errors["other errors"] == 10 && report.errors["error 1"] == 2)
        #expect(report.matching == 1 && report.looked == 33 && report.count == 1)
        report.all = 66
        #expect(report.count == 2)
    }

    @Test func `a poll for updates alone leaves messages where they are`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let domain = world.routes.domain
        let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
        let device = try await domain.devices.find(try #require(DeviceID(world.first.id)))
        let channel = try await domain.channels.register(id, device: device.serial, name: nil, vapidKey: nil).channel
        _ = try await domain.publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 60), to: channel)
        #expect(try await world.poll(nil, #""only":"updates""#).map(\.update) == [update])
        let answer = try await world.ask(nil, #""only":"updates""#)
        #expect(answer.json?["envelopes"] == .array([]))
        #expect(try await world.counts(update) == ["stored": 1])
        // The message was not received with it.
        guard case .array(let rest)? = try await world.ask(nil, "").json?["envelopes"] else { return #expect(Bool(false)) }
        #expect(rest.map { $0["messageType"] } == [.string("notification")])
        let bad = try await world.ask(nil, #""only":"messages""#, expecting: 400)
        #expect(bad.code == "field_invalid")
    }
}
