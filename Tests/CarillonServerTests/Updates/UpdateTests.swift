import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

struct UpdateTests {
    // MARK: Once, from end to end

    @Test func `an update reaches a device that matches, once, and is done when the device reports it`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "region == 'north'")
        #expect(try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#)).isEmpty)
        let copies = try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "2"))
        #expect(copies.map(\.update) == [update])
        #expect(copies[0].attempt == 1 && copies[0].entry == 1 && copies[0].kind == "content")
        #expect(try await world.counts(update) == ["waiting": 1])
        #expect(try await world.poll().isEmpty)
        #expect(try await world.counts(update) == ["stored": 1])
        #expect(try await world.poll(nil, UpdateWorld.result(copies[0])).isEmpty)
        #expect(try await world.counts(update) == ["done": 1])
        world.advance(seconds: 3 * 86_400)
        #expect(try await world.poll().isEmpty)
    }

    @Test(.timeLimit(.minutes(4))) func `a published update reaches a waiting device at once`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        // Longer than the time limit of the test.
        async let copies = world.poll(nil, #""wait":300"#)
        let homes = world.routes.domain.homes
        try await eventually { homes.here.contains { $0.population.waiters > 0 } }
        let update = try await world.publish()
        #expect(try await copies.map(\.update) == [update])
    }

    @Test func `a device that registers later receives the live updates`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let late = try await world.device()
        #expect(try await world.poll(late).map(\.update) == [update])
    }

    @Test func `the position of a poll confirms the updates up to it`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let answer = try await world.ask(nil, #""max":1"#)
        let more = answer.json?["more"]
        #expect(more == .bool(false))
        #expect(try await world.poll().isEmpty)
        #expect(try await world.counts(update) == ["stored": 1])
    }

    // MARK: Parameters

    @Test func `a parameter that is missing matches nothing, and neither does its negation`() async throws {
        let world = try await UpdateWorld()
        try await world.publish(audience: "region == 'north'")
        try await world.publish(audience: "region != 'north'")
        let other = try await world.publish(audience: "region != 'north' || level == 1")
        #expect(try await world.poll(nil, UpdateWorld.parameters(#""level":1"#)).map(\.update) == [other])
    }

    @Test(arguments: [
        ("user == 'anna'", false), ("app == 'com.example.app'", true), ("true", true), ("level in [1, 2]", true),
        ("!(region == 'south')", true), ("!(region in ['north'])", false), ("level > 2", false), ("score > 0.5 && on", true),
        ("'b' in tags", true), ("'c' in tags", false),
        ("since > timestamp('2026-01-01T00:00:00Z')", true), ("within(place, 48.2, 16.4, 5000.0)", true),
        ("within(place, 49.2, 16.4, 5000.0)", false), ("region.startsWith('no')", true),
    ])
    func `an audience is evaluated against the app, the user and the parameters of a device`(audience: String, matches: Bool)
        async throws
    {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: audience)
        let values =
            #""region":"north","level":2,"score":1,"on":true,"tags":["a","b"],"since":"2026-02-01T00:00:00.000Z","place":{"latitude":48.2082,"longitude":16.3738}"#
        #expect(try await world.poll(nil, UpdateWorld.parameters(values)).map(\.update) == (matches ? [update] : []))
    }

    @Test func `a device cannot report another identity, as a parameter or with a forged credential`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "device == '\(world.first.id)'")
        let other = try await world.device()
        for name in ["device", "user", "app"] {
            let answer = try await world.ask(
                other, UpdateWorld.parameters(#""\#(name)":"\#(world.first.id)""#), expecting: 400)
            #expect(answer.code == "field_unknown")
        }
        #expect(try await world.poll(other).isEmpty)
        let forged = world.first.id + "." + other.credential.split(separator: ".")[1]
        let refused = try await world.ask(
            UpdateWorld.Device(id: world.first.id, credential: forged), expecting: 401)
        #expect(refused.code == "credential_invalid")
        #expect(try await world.poll().map(\.update) == [update])
    }

    @Test func `a device that polls was seen`() async throws {
        let world = try await UpdateWorld()
        world.advance(seconds: 2 * 86_400)
        try await world.ask()
        try await world.routes.domain.devices.writeSeen()
        let id = try #require(DeviceID(world.first.id))
        let device = try #require(try await world.routes.store.device(id))
        #expect(device.seenAt == world.now)
    }

    @Test func `a location is stored with the accuracy of a kilometre, and for a day`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""place":{"latitude":48.20849,"longitude":16.37208}"#))
        let store = world.routes.store
        #expect(try await stores.countBindings(withPlaces: "48.21", in: store) == 1)
        #expect(try await stores.countBindings(withPlaces: "48.208", in: store) == 0)
        #expect(try await stores.countBindings(withParameters: "48.208", in: store) == 0)
        world.advance(seconds: 86_400)
        try await world.publish(audience: "within(place, 48.2, 16.4, 50000.0)")
        #expect(try await world.poll().isEmpty)
        try await world.sweep()
        #expect(try await stores.countLocatedBindings(in: store) == 0)
    }

    @Test func `leaving the audience before the receipt removes the update, and after it changes nothing`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "region == 'north'")
        // It is stored in the inbox, and not delivered.
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#) + #","max":0"#)
        #expect(try await world.counts(update) == ["waiting": 1])
        #expect(try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#, revision: "2")).isEmpty)
        #expect(try await world.counts(update) == [:])
        let copies = try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "3"))
        #expect(copies.map(\.entry) == [1])
        #expect(try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#, revision: "4")).isEmpty)
        #expect(try await world.counts(update) == ["stored": 1])
        #expect(try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "5")).isEmpty)
    }

    @Test func `a standing update is delivered once for each entry of the device into the audience`() async throws {
        let world = try await UpdateWorld()
        try await world.publish(audience: "region == 'north'", #","mode":"standing""#)
        for round in 1...3 {
            let copies = try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "n\(round)"))
            #expect(copies.map(\.entry) == [round])
            #expect(try await world.poll(nil, UpdateWorld.result(copies[0])).isEmpty)
            let south = UpdateWorld.parameters(#""region":"south""#, revision: "s\(round)")
            #expect(try await world.poll(nil, south).isEmpty)
        }
    }

    @Test func `an update is delivered when the device enters the audience, also after newer updates`()
        async throws
    {
        let world = try await UpdateWorld()
        let old = try await world.publish(audience: "region == 'north'")
        let new = try await world.publish()
        #expect(try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#)).map(\.update) == [new])
        #expect(
            try await world.poll(nil, UpdateWorld.parameters(#""region":"north""#, revision: "2")).map(\.update) == [old])
    }

    @Test func `the values of an unchanged revision of parameters are not read`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#))
        try await world.ask(nil, UpdateWorld.parameters(#""region":7"#))
        try await world.ask(nil, UpdateWorld.parameters(#""region":7"#, revision: "2"), expecting: 400)
    }

    // MARK: Redelivery

    @Test
    func `a failed update is retried at once, then after longer delays, is parked after ten failures, and can be requeued`()
        async throws
    {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        var copies = try await world.poll()
        copies = try await world.poll(nil, UpdateWorld.result(copies[0], "failed", #","reason":"disk""#))
        #expect(copies.map(\.attempt) == [2])
        for attempt in 3...10 {
            #expect(try await world.poll(nil, UpdateWorld.result(copies[0], "failed")).isEmpty)
            world.advance(seconds: CompletionMachine.delay(attempt - 1) - 1)
            #expect(try await world.poll().isEmpty)
            world.advance(seconds: 1)
            copies = try await world.poll()
            #expect(copies.map(\.attempt) == [attempt])
        }
        #expect(try await world.poll(nil, UpdateWorld.result(copies[0], "failed")).isEmpty)
        #expect(try await world.counts(update) == ["parked": 1])
        world.advance(seconds: 86_400)
        #expect(try await world.poll().isEmpty)
        let answer = try await world.routes.request(.post, "/v1/updates/\(update)/requeue", key: world.sender)
        let count = answer.json?["count"]
        #expect(count == .integer(1))
        #expect(try await world.poll().map(\.attempt) == [11])
    }

    @Test func `a failed update does not delay other updates`() async throws {
        let world = try await UpdateWorld()
        try await world.publish()
        let copies = try await world.poll()
        let other = try await world.publish()
        let next = try await world.poll(nil, UpdateWorld.result(copies[0], "failed"))
        #expect(next.map(\.update).contains(other) && next.count == 2)
    }

    @Test func `a deferred update is delivered again after its delay, and never counts as a failure`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        var copies = try await world.poll()
        for attempt in 2...15 {
            #expect(try await world.poll(nil, UpdateWorld.result(copies[0], "deferred", #","delay":60"#)).isEmpty)
            #expect(try await world.counts(update) == ["deferred": 1])
            world.advance(seconds: 60)
            copies = try await world.poll()
            #expect(copies.map(\.attempt) == [attempt])
        }
    }

    @Test func `a deferral contains its dependency, and its reason`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        var copies = try await world.poll()
        for (members, reason) in [
            (#","until":"committed""#, "committed"), (#","reason":"three edits""#, "three edits"),
            (#","until":"committed","reason":"three edits""#, "committed: three edits"),
            (#","until":"mode","reason":"r","delay":60"#, "mode: r"),
        ] {
            _ = try await world.poll(nil, UpdateWorld.result(copies[0], "deferred", members))
            let page = try await world.routes.request(.get, "/v1/updates/\(update)/devices", key: world.sender)
            let text = String(decoding: page.body, as: UTF8.self)
            #expect(text.contains(#""reason":"\#(reason)""#), "\(text)")
            world.advance(seconds: 7 * 86_400)
            copies = try await world.poll()
        }
    }

    @Test func `a received update without a result for a day is delivered again, also to a device that does not poll`()
        async throws
    {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        _ = try await world.poll()
        #expect(try await world.poll().isEmpty)
        world.advance(seconds: 86_399)
        try await world.sweep()
        #expect(try await world.counts(update) == ["stored": 1])
        world.advance(seconds: 1)
        try await world.sweep()
        #expect(try await world.counts(update) == ["waiting": 1])
        #expect(try await world.poll().map(\.attempt) == [2])
    }

    @Test func `a permanent failure parks at once`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let copies = try await world.poll()
        #expect(try await world.poll(nil, UpdateWorld.result(copies[0], "failed", #","permanent":true"#)).isEmpty)
        #expect(try await world.counts(update) == ["parked": 1])
    }

    @Test func `results of unknown, foreign or final updates are reported and change nothing`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "device == '\(world.first.id)'")
        let copies = try await world.poll()
        let other = try await world.device()
        var answer = try await world.ask(other, UpdateWorld.result(copies[0]))
        #expect(Self.why(answer) == "unknown")
        #expect(try await world.counts(update) == ["waiting": 1])
        try await world.ask(nil, UpdateWorld.result(copies[0]))
        answer = try await world.ask(nil, UpdateWorld.result(copies[0], "failed"))
        #expect(Self.why(answer) == "final")
        #expect(try await world.counts(update) == ["done": 1])
    }

    @Test func `a result before the receipt removes the copy from the inbox`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let copies = try await world.poll()
        // By another way than the poll's position.
        #expect(try await world.poll(nil, UpdateWorld.result(copies[0]), position: .some(nil)).isEmpty)
        #expect(try await world.counts(update) == ["done": 1])
        let inbox = try await world.routes.request(.get, "/v1/inbox?carillon=5", key: world.first.credential)
        let waiting = inbox.json?["envelopes"]
        #expect(waiting == .array([]))
    }

    /// Of the only result that changed nothing.
    private static func why(_ answer: RouteFixture.Answer) -> String? {
        guard case .array(let ignored)? = answer.json?["ignored"], ignored.count == 1,
            case .string(let why)? = ignored[0]["why"]
        else { return nil }
        return why
    }

    // MARK: Kinds and order

    @Test func `a kind that was not announced is unsupported, until it is announced`() async throws {
        let world = try await UpdateWorld()
        let popup = try await world.publish("popup", #"{"style":"important","title":"t"}"#)
        let content = try await world.publish()
        #expect(try await world.poll(kinds: ["content"]).map(\.update) == [content])
        #expect(try await world.counts(popup) == ["unsupported": 1])
        #expect(try await world.poll(kinds: ["content", "popup"]).map(\.update) == [popup])
    }

    @Test func `the next update of an order key is delivered when the earlier one is done`() async throws {
        let world = try await UpdateWorld()
        let updates = [
            try await world.publish(#","orderKey":"k""#), try await world.publish(#","orderKey":"k""#),
            try await world.publish(#","orderKey":"k""#), try await world.publish(#","orderKey":"other""#),
        ]
        var copies = try await world.poll()
        #expect(copies.map(\.update) == [updates[0], updates[3]])
        #expect(try await world.poll(nil, UpdateWorld.result(copies[0], "deferred", #","delay":600"#)).isEmpty)
        copies = try await world.poll(nil, UpdateWorld.result(copies[0]))
        #expect(copies.map(\.update) == [updates[1]])
        // Parking lets the next through.
        copies = try await world.poll(nil, UpdateWorld.result(copies[0], "failed", #","permanent":true"#))
        #expect(copies.map(\.update) == [updates[2]])
    }

    @Test func `the next update of an order key waits for one that was delivered before it was published`() async throws {
        let world = try await UpdateWorld()
        try await world.publish(#","orderKey":"k""#)
        let copies = try await world.poll()
        let next = try await world.publish(#","orderKey":"k""#)
        #expect(try await world.poll().isEmpty)
        #expect(try await world.poll(nil, UpdateWorld.result(copies[0])).map(\.update) == [next])
    }

    @Test func `the next update of an order key is delivered when the device left the audience of the earlier one`()
        async throws
    {
        let world = try await UpdateWorld()
        try await world.publish(
            "content", #"{"action":"roots"}"#, audience: "region == 'north'", #","orderKey":"k""#)
        let next = try await world.publish(#","orderKey":"k""#)
        try await world.ask(nil, UpdateWorld.parameters(#""region":"north""#) + #","max":0"#)
        #expect(
            try await world.poll(nil, UpdateWorld.parameters(#""region":"south""#, revision: "2")).map(\.update) == [next])
    }

    @Test func `order is kept where the inbox has no room for the first`() async throws {
        let store = try await stores.open(.init(inbox: InboxLimits(envelopes: 1)))
        let world = try await UpdateWorld(store: store)
        var updates = [try await world.publish()]
        for _ in 0..<2 { updates.append(try await world.publish(#","orderKey":"k""#)) }
        var given: [String] = []
        for _ in 0..<4 {
            for copy in try await world.poll() {
                given.append(copy.update)
                // Received by the position, and done.
                try await world.ask(nil, UpdateWorld.result(copy) + #","max":0"#)
            }
        }
        #expect(given == updates)
    }

    @Test func `an update behind another one that ended meanwhile is due at once`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let store = world.routes.store
        let device = try await world.routes.domain.devices.find(try #require(DeviceID(world.first.id)))
        let binding = try await world.routes.domain.updateDelivery.binding(of: device, profile: "")
        try await world.publish(#","orderKey":"k","audience":"level == 1""#)
        let key = CompletionKey(update: UpdateSerial(1), binding: binding.serial, entry: 1)
        let behind = Completion(key: key, machine: CompletionMachine(), changedAt: world.now, orderKey: "k")
        #expect(
            try await store.evaluated(
                binding.serial, revision: binding.revision, to: .nowhere, isFull: false, adding: [behind], at: world.now))
        #expect(try await store.dueCompletions(of: nil, in: .all, at: world.now, limit: 10).map(\.completion.key) == [key])
    }

    @Test func `a device's answer for the envelope counts as well`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let copies = try await world.poll()
        let answer = try await world.routes.request(
            .post, "/v1/inbox/results", key: world.first.credential,
            #"{"results":[{"version":"\#(copies[0].version)","result":"failed"}]}"#)
        #expect(answer.status == 204)
        #expect(try await world.counts(update) == ["failed": 1])
        #expect(try await world.poll().map(\.attempt) == [2])
    }

    @Test func `two concurrent polls together return all updates, each with one completion`() async throws {
        let world = try await UpdateWorld()
        for _ in 0..<5 { try await world.publish() }
        async let one = world.poll(nil, position: .some(nil))
        async let two = world.poll(nil, position: .some(nil))
        let (first, second) = try await (one, two)
        let names = Set((first + second).map(\.version))
        #expect(Set((first + second).map(\.update)).count == 5)
        // One of both may have had them delivered anew.
        let entries = try await stores.count(.completions, in: world.routes.store)
        #expect(entries == 5 && names.count >= 5)
    }

    @Test(arguments: [-3600, -300 * 86_400] as [Int64])
    func `a clock that goes back delays no repetition`(step: Int64) async throws {
        let world = try await UpdateWorld()
        try await world.publish("content", nil, #","ttl":2000000"#)
        _ = try await world.poll()
        try await world.ask()
        try await world.sweep()
        world.advance(seconds: step)
        try await world.sweep()
        world.advance(seconds: 86_399)
        try await world.sweep()
        #expect(try await world.poll().isEmpty)
        world.advance(seconds: 1)
        try await world.sweep()
        #expect(try await world.poll().map(\.attempt) == [2])
    }

    @Test func `a due update is delivered once, with several searches`() async throws {
        let world = try await UpdateWorld()
        try await world.publish()
        _ = try await world.poll()
        try await world.ask()
        world.advance(seconds: 86_400)
        let delivery = world.routes.domain.updateDelivery
        async let one: Void = delivery.sweep(forgetting: nil)
        async let two: Void = delivery.sweep(forgetting: nil)
        _ = try await (one, two)
        #expect(try await world.poll().map(\.attempt) == [2])
    }

    @Test func `a position confirms more updates than one read finds`() async throws {
        let world = try await UpdateWorld()
        let text = String(repeating: "x", count: 8000)
        for _ in 0..<150 { try await world.publish("a.b", #"{"t":"\#(text)"}"#) }
        let kinds = ["a.b"]
        #expect(try await world.poll(nil, #""max":500"#, kinds: kinds).count == 150)
        #expect(try await world.poll(kinds: kinds).isEmpty)
        #expect(try await stores.count(.envelopes, in: world.routes.store) == 0)
    }

    @Test func `an update that is parked at one device is requeued there alone`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        let other = try await world.device()
        for device in [world.first, other] {
            let copies = try await world.poll(device)
            try await world.ask(device, UpdateWorld.result(copies[0], "failed", #","permanent":true"#))
        }
        let answer = try await world.routes.request(
            .post, "/v1/updates/\(update)/requeue", key: world.sender, #"{"device":"\#(other.id)"}"#)
        let count = answer.json?["count"]
        #expect(count == .integer(1))
        #expect(try await world.poll().isEmpty)
        #expect(try await world.poll(other).count == 1)
    }

    // MARK: Kinds

    @Test func `a device does not receive kinds that it does not process any more`() async throws {
        let world = try await UpdateWorld()
        let popup = try await world.publish("popup", #"{"style":"failure","title":"t"}"#)
        let content = try await world.publish()
        try await world.ask(nil, #""max":0"#)
        #expect(try await world.poll(kinds: ["content"]).map(\.update) == [content])
        #expect(try await world.counts(popup) == ["unsupported": 1])
        #expect(try await world.poll(kinds: ["content", "popup"]).map(\.update) == [popup])
        // An update that it has and did not finish is not delivered again.
        try await world.ask(nil, #""max":0"#, kinds: ["content", "popup"])
        try await world.ask(nil, #""max":0"#, kinds: ["content"])
        world.advance(seconds: 90_000)
        #expect(try await world.poll(kinds: ["content"]).map(\.update) == [content])
        #expect(try await world.counts(popup) == ["unsupported": 1])
    }

    @Test func `kinds that are announced later keep the order of their key`() async throws {
        let world = try await UpdateWorld()
        try await world.ask(kinds: ["content"])
        var updates: [String] = []
        for _ in 0..<2 {
            updates.append(try await world.publish("popup", #"{"style":"failure","title":"t"}"#, #","orderKey":"k""#))
        }
        #expect(try await world.poll(kinds: ["content"]).isEmpty)
        for update in updates {
            let copies = try await world.poll()
            #expect(copies.map(\.update) == [update])
            try await world.ask(nil, UpdateWorld.result(try #require(copies.first)) + #","max":0"#)
        }
    }

    @Test func `a device that left, and knows the kind when it is back, receives the update that it did not know`()
        async throws
    {
        let world = try await UpdateWorld()
        let north = { (revision: String) in UpdateWorld.parameters(#""region":"north""#, revision: revision) }
        let update = try await world.publish(
            "popup", #"{"style":"failure","title":"t"}"#, audience: "region == 'north'")
        try await world.ask(nil, north("1"), kinds: ["content"])
        #expect(try await world.counts(update) == ["unsupported": 1])
        try await world.ask(nil, UpdateWorld.parameters(#""region":"south""#, revision: "2"), kinds: ["content"])
        try await world.ask(nil, north("3"), kinds: ["content"])
        #expect(try await world.poll().map(\.update) == [update])
    }

    @Test func `an update that a device had when it left and forgot the kind is delivered when it knows the kind again`()
        async throws
    {
        let world = try await UpdateWorld()
        func region(_ name: String, _ revision: String) -> String {
            UpdateWorld.parameters(#""region":"\#(name)""#, revision: revision)
        }
        let update = try await world.publish(
            "popup", #"{"style":"failure","title":"t"}"#, audience: "region == 'north'")
        #expect(try await world.poll(nil, region("north", "1")).map(\.update) == [update])
        try await world.ask()
        try await world.ask(nil, region("south", "2"))
        try await world.ask(kinds: ["content"])
        #expect(try await world.counts(update) == ["unsupported": 1])
        #expect(try await world.poll(nil, region("north", "3"), kinds: ["content"]).isEmpty)
        let copies = try await world.poll()
        #expect(copies.map(\.update) == [update])
        try await world.ask(nil, UpdateWorld.result(try #require(copies.first)))
        #expect(try await world.counts(update) == ["done": 1])
    }

    @Test func `a location that is a day old leads out of audiences`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish(audience: "within(place, 48.2, 16.4, 5000.0)", #","mode":"standing""#)
        let here = { (revision: String) in
            UpdateWorld.parameters(#""place":{"latitude":48.2,"longitude":16.4}"#, revision: revision)
        }
        let copies = try await world.poll(nil, here("1"))
        try await world.ask(nil, UpdateWorld.result(try #require(copies.first)))
        world.advance(seconds: 86_401)
        try await world.sweep()
        try await world.ask()
        #expect(try await world.poll(nil, here("2")).map(\.update) == [update], "it came back")
    }

    // MARK: The end

    @Test func `a withdrawn update is not delivered later, and a device that it waited for receives only the withdrawal`()
        async throws
    {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        try await world.ask(nil, #""max":0"#)
        try await world.withdraw(update)
        #expect(try await world.poll().isEmpty)
        try await world.sweep()
        #expect(try await world.counts(update) == ["withdrawn": 1])
        #expect(try await world.poll().map(\.attempt) == [0], "an answer with it may have been under way")
        try await world.ask()
        await world.routes.domain.runtime.inbox.flush()
        #expect(try await stores.count(.envelopes, in: world.routes.store) == 0)
        let late = try await world.device()
        #expect(try await world.poll(late).isEmpty)
        #expect(try await world.routes.request(.delete, "/v1/updates/\(update)", key: world.sender).code == "update_final")
    }

    @Test func `a device is asked to drop a received update that was withdrawn`() async throws {
        let world = try await UpdateWorld()
        let update = try await world.publish()
        _ = try await world.poll()
        try await world.ask()
        try await world.withdraw(update)
        try await world.sweep()
        let copies = try await world.poll()
        #expect(copies.map(\.update) == [update])
        #expect(copies.map(\.attempt) == [0])
        #expect(try await world.counts(update) == ["withdrawn": 1])
        #expect(try await world.poll().isEmpty)
    }

    @Test func `an update replaces the one that it supersedes`() async throws {
        let world = try await UpdateWorld()
        let old = try await world.publish()
        try await world.ask(nil, #""max":0"#)
        let new = try await world.publish(#","supersedes":"\#(old)""#)
        #expect(try await world.poll().map(\.update) == [new])
        try await world.sweep()
        #expect(try await world.counts(old) == ["superseded": 1])
        let again = try await world.routes.request(
            .post, "/v1/updates", key: world.sender,
            #"{"kind":"definitions","supersedes":"\#(old)"}"#)
        #expect(again.code == "update_unknown")
    }

    @Test func `an update ends with its time, delivered or not`() async throws {
        let world = try await UpdateWorld()
        let stored = try await world.publish("definitions", "{}", #","ttl":60"#)
        _ = try await world.poll()
        try await world.ask()
        let waiting = try await world.publish("definitions", "{}", #","ttl":60"#)
        try await world.ask(nil, #""max":0"#)
        world.advance(seconds: 60)
        #expect(try await world.poll().isEmpty)
        try await world.sweep()
        for update in [stored, waiting] {
            #expect(try await world.counts(update) == ["expired": 1])
            let shown = try await world.routes.request(.get, "/v1/updates/\(update)", key: world.sender)
            #expect(shown["status"] == "expired")
        }
        let copies = try await world.poll()
        #expect(Set(copies.map(\.update)) == [stored, waiting] && copies.allSatisfy { $0.attempt == 0 })
        // The device fetches content all the same, or anew.
        let content = try await world.publish(#","ttl":60"#)
        #expect(try await world.poll().map(\.update) == [content])
        try await world.ask()
        world.advance(seconds: 60)
        try await world.sweep()
        #expect(try await world.poll().isEmpty)
        #expect(try await world.counts(content) == ["expired": 1])
    }

    @Test func `a delivered but unconfirmed update is withdrawn from the device all the same`() async throws {
        for end in ["withdrawn", "expired", "superseded"] {
            let world = try await UpdateWorld()
            let popup = #"{"style":"failure","title":"t"}"#
            let update = try await world.publish("popup", popup, #","ttl":60"#)
            // It disconnects before its next poll.
            let shown = try await world.poll()
            #expect(shown.map(\.update) == [update])
            switch end {
            case "withdrawn": try await world.withdraw(update)
            case "superseded": _ = try await world.publish("popup", popup, #","supersedes":"\#(update)""#)
            default: world.advance(seconds: 61)
            }
            // The inbox's own sweep may be first.
            _ = try await world.routes.store.sweep(at: world.now, forgetting: nil, limit: 100)
            try await world.sweep()
            #expect(try await world.counts(update) == [end: 1])
            let copies = try await world.poll()
            #expect(copies.filter { $0.update == update }.map(\.attempt) == [0], "\(end)")
        }
    }

    @Test func `a full inbox stops the log there, and loses nothing`() async throws {
        let store = try await stores.open(.init(inbox: InboxLimits(envelopes: 2)))
        let world = try await UpdateWorld(store: store)
        var updates: [String] = []
        for _ in 0..<5 { updates.append(try await world.publish()) }
        #expect(try await world.poll().map(\.update) == Array(updates[..<2]))
        #expect(try await world.poll().map(\.update) == Array(updates[2..<4]))
        #expect(try await world.poll().map(\.update) == [updates[4]])
    }
}

extension UpdateWorld {
    /// Content with more members.
    @discardableResult func publish(_ rest: String) async throws -> String {
        try await publish("content", nil, audience: nil, rest)
    }
}
