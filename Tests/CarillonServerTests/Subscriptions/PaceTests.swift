import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The maximum rate of firings for a device, and whether it receives pushes despite acknowledgements.
@Suite(.timeLimit(.minutes(5)))
struct PaceTests {
    private static func body(
        _ rest: String, item: String = "stock.ACME", trigger: String? = nil, policy: String = "every",
        format: String? = nil
    ) -> String {
        SubscriptionWorld.body(
            trigger, item: item, key: "paced", format: format ?? #"{"title":"${price}"}"#,
            rest: #","policy":"\#(policy)"\#(rest)"#)
    }

    private func publish(_ prices: [Int], _ item: String = "stock.ACME", to world: SubscriptionWorld) async throws {
        for price in prices { try await world.publish(item, #"{"price":\#(price)}"#) }
    }

    /// The firings that the device receives now, and acknowledges.
    private func notified(_ world: SubscriptionWorld) async throws -> [String] {
        try await world.settle()
        _ = try await world.routes.domain.firings.notifyThrottled()
        let titles = try await world.titles()
        try await world.acknowledgeAll()
        return titles
    }

    private func held(_ world: SubscriptionWorld) async throws -> Int {
        try await world.settle()
        return try await stores.count(.throttledFirings, in: world.routes.store)
    }

    @Test func `of an item that merges, the newest values are delivered when their time has come`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#))
        try await publish([1], to: world)
        #expect(try await notified(world) == ["1"], "the first is not delayed")
        try await publish([2, 3, 4], to: world)
        #expect(try await held(world) == 1)
        for _ in 0..<2 {
            #expect(try await notified(world) == [])
            world.advance(seconds: 1)
        }
        #expect(try await notified(world) == ["4"])
        #expect(try await held(world) == 0)
        try await publish([5], to: world)
        #expect(try await notified(world) == [], "two seconds count from the last delivery")
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["5"])
        world.advance(seconds: 2)
        try await publish([6], to: world)
        #expect(try await notified(world) == ["6"], "slow updates do not wait")
    }

    @Test func `of distinct updates all are delivered in their order, or as many as fit into the buffer`()
        async throws
    {
        for (rest, expected) in [
            (#","maxFrequency":0.5"#, ["1", "2", "3", "4", "5"]), (#","maxFrequency":0.5,"bufferSize":2"#, ["1", "4", "5"]),
            (#","maxFrequency":0.5,"bufferSize":1"#, ["1", "5"]),
        ] {
            let world = try await SubscriptionWorld()
            try await world.subscribe(Self.body(rest, item: "events"))
            try await publish([1, 2, 3, 4, 5], "events", to: world)
            var all: [String] = []
            for _ in 0..<6 {
                let titles = try await notified(world)
                #expect(titles.count <= 1)
                all += titles
                world.advance(seconds: 2)
            }
            #expect(all == expected)
        }
    }

    @Test func `waiting firings are delivered at their pace also when all of them are overdue`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#, item: "events"))
        try await publish([1, 2, 3], "events", to: world)
        #expect(try await notified(world) == ["1"])
        world.advance(seconds: 3600)
        #expect(try await notified(world) == ["2"])
        #expect(try await notified(world) == [])
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["3"])
    }

    @Test func `each item has its own time, and so has each subscription`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(
            #"{"items":["stock.A","stock.B"],"fields":["price"],"format":{"title":"${item}"},"policy":"every","maxFrequency":0.1}"#
        )
        try await world.subscribe(SubscriptionWorld.body(nil, item: "stock.A", rest: #","policy":"every""#))
        try await publish([1], "stock.A", to: world)
        #expect(try await notified(world).count == 2)
        try await publish([1], "stock.B", to: world)
        #expect(try await notified(world) == ["stock.B"])
        try await publish([2], "stock.A", to: world)
        #expect(try await notified(world) == ["stock.A: 2"], "the other subscription has no pace")
    }

    @Test func `a firing that expires while it waits is not delivered`() async throws {
        let world = try await SubscriptionWorld()
        let end = Timestamp3339.text(1_700_000_001_000)
        try await world.subscribe(Self.body(#","maxFrequency":0.5,"expiresAt":"\#(end)""#))
        try await publish([1, 2], to: world)
        #expect(try await notified(world) == ["1"])
        world.advance(seconds: 2)
        #expect(try await notified(world) == [])
        #expect(try await held(world) == 0)
    }

    @Test func `a firing that waits for a full inbox is dropped, and delays no other`() async throws {
        let inbox = InboxLimits(envelopes: 2)
        let world = try await SubscriptionWorld(store: stores.open(.init(inbox: inbox)))
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#))
        try await publish([1], to: world)
        #expect(try await notified(world) == ["1"])
        try await publish([2], to: world)
        for key in ["a", "b"] {
            try await world.subscribe(
                SubscriptionWorld.body("price > 0.0", item: "stock.\(key)", key: key, format: #"{"title":"full"}"#))
            try await world.publish("stock.\(key)", #"{"price":1}"#)
        }
        #expect(try await world.titles() == ["full", "full"])
        #expect(try await held(world) == 1)
        world.advance(seconds: 2)
        _ = try await world.routes.domain.firings.notifyThrottled()
        #expect(try await held(world) == 0)
        try await world.acknowledgeAll()
        world.advance(seconds: 2)
        try await publish([3], to: world)
        #expect(try await notified(world) == ["3"])
    }

    @Test(arguments: ["PATCH", "DELETE", "suspend", "once"])
    func `a change, a removal and a suspension end the waiting firings`(what: String) async throws {
        let world = try await SubscriptionWorld()
        let id = try await world.subscribe(Self.body(#","maxFrequency":0.5"#))["id"]
        try await publish([1], to: world)
        #expect(try await notified(world) == ["1"])
        try await publish([2], to: world)
        #expect(try await held(world) == 1)
        let path = "/v1/device/subscriptions/\(id)"
        switch what {
        case "PATCH": _ = try await world.routes.request(.patch, path, key: world.device, "{}")
        case "once":
            _ = try await world.routes.request(
                .patch, path, key: world.device, #"{"policy":"once","trigger":"price > 9.0"}"#)
        case "DELETE": _ = try await world.routes.request(.delete, path, key: world.device)
        default: _ = try await world.routes.request(.post, "/v1/devices/\(world.id)/suspend", key: world.routes.admin)
        }
        world.advance(seconds: 2)
        #expect(try await notified(world).isEmpty)
        #expect(try await held(world) == 0)
    }

    @Test func `a single firing is not throttled, and a firing in a cool-down is not kept`() async throws {
        let world = try await SubscriptionWorld()
        let once = try await world.subscribe(
            Self.body(#","maxFrequency":0.01"#, trigger: "price > 1.0", policy: "once"))["id"]
        for price in [2, 3] {
            try await publish([price], to: world)
            #expect(try await notified(world) == ["\(price)"])
            try await publish([1], to: world)
            _ = try await world.routes.request(.patch, "/v1/device/subscriptions/\(once)", key: world.device, "{}")
        }
        let other = try await SubscriptionWorld()
        try await other.subscribe(Self.body(#","maxFrequency":1,"coolDown":10"#))
        try await publish([1, 2], to: other)
        #expect(try await notified(other) == ["1"])
        #expect(try await held(other) == 0)
    }

    @Test func `a crossing that occurs too soon waits`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#, trigger: "price > 1.0", policy: "everyCrossing"))
        try await publish([2], to: world)
        #expect(try await notified(world) == ["2"])
        try await publish([1, 3, 4, 1], to: world)
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["3"])
    }

    @Test func `a clock that is set back delays no firing`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#))
        try await publish([1], to: world)
        #expect(try await notified(world) == ["1"])
        world.advance(seconds: -3600)
        try await publish([2], to: world)
        #expect(try await notified(world) == ["2"])
    }

    @Test func `a waiting firing is delivered before later ones, also when it is overdue`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#, item: "events"))
        try await publish([1, 2], "events", to: world)
        #expect(try await held(world) == 1)
        world.advance(seconds: 10)
        try await publish([3], "events", to: world)
        #expect(try await held(world) == 2, "it does not overtake")
        try await world.acknowledgeAll()
        #expect(try await notified(world) == ["2"])
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["3"])
    }

    @Test func `a firing that a change made void does not delay later ones`() async throws {
        let world = try await SubscriptionWorld()
        let id = try await world.subscribe(Self.body(#","maxFrequency":0.5"#, item: "events"))["id"]
        try await publish([1], "events", to: world)
        #expect(try await notified(world) == ["1"])
        try await publish([2], "events", to: world)
        #expect(try await held(world) == 1)
        _ = try await world.routes.request(.patch, "/v1/device/subscriptions/\(id)", key: world.device, "{}")
        try await publish([3], "events", to: world)
        #expect(try await held(world) == 2)
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["3"])
    }

    @Test(arguments: [-3600, -86_400, -300 * 86_400] as [Int64])
    func `after a clock was set back, a waiting firing is delivered when its pace allows it`(step: Int64) async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#))
        try await publish([1], to: world)
        #expect(try await notified(world) == ["1"])
        try await publish([2], to: world)
        #expect(try await notified(world) == [])
        world.advance(seconds: step)
        #expect(try await notified(world) == [])
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["2"])
        try await publish([3], to: world)
        #expect(try await notified(world) == [])
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["3"])
    }

    @Test func `a thousand of a device wait at the most`() async throws {
        let world = try await SubscriptionWorld()
        for number in 0..<11 {
            let body = SubscriptionWorld.body(
                nil, item: "events", key: "\(number)", format: #"{"title":"${price}"}"#,
                rest: #","policy":"every","maxFrequency":0.001"#)
            try await world.subscribe(body)
        }
        for price in 0..<103 { try await world.publish("events", #"{"price":\#(price)}"#) }
        #expect(try await held(world) == SubscriptionLimits.throttledFirings)
        _ = try await world.routes.request(.delete, "/v1/device/subscriptions", key: world.device)
        try await world.routes.domain.subscriptions.removeEnded()
        #expect(try await held(world) == 0)
    }

    @Test func `a waiting firing begins the cool-down`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.01,"coolDown":10"#))
        try await publish([1], to: world)
        #expect(try await notified(world) == ["1"])
        world.advance(seconds: 20)
        try await publish([2], to: world)
        #expect(try await held(world) == 1)
        let store = world.routes.store
        let row = try #require(try await stores.throttledFirings(in: store).first)
        let next = ThrottledFiring(
            target: .init(subscription: row.subscription, revision: row.revision), device: row.device,
            item: try #require(ItemName("stock.ACME")), number: 99, body: [], ttl: 60, isAlwaysPushed: false,
            isDistinct: false,
            milliseconds: 100_000, buffer: 1)
        world.advance(seconds: 9)
        #expect(try await store.throttle([next], at: world.routes.domain.time.now()) == [.late])
        world.advance(seconds: 1)
        #expect(try await store.throttle([next], at: world.routes.domain.time.now()) == [.throttled(insteadOf: 1)])
    }

    @Test func `a waiting firing whose item cannot be read is dropped, and other firings are delivered`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#))
        try await world.subscribe(
            SubscriptionWorld.body(
                nil, item: "events", key: "other", format: #"{"title":"${price}"}"#,
                rest: #","policy":"every","maxFrequency":0.5"#))
        try await publish([1], to: world)
        #expect(try await notified(world) == ["1"])
        try await publish([2], "events", to: world)
        #expect(try await notified(world) == ["2"])
        try await publish([3], to: world)
        try await publish([4], "events", to: world)
        #expect(try await held(world) == 2)
        try await stores.damageThrottledFirings(of: "stock.ACME", in: world.routes.store)
        world.advance(seconds: 2)
        #expect(try await notified(world) == ["4"])
        #expect(try await held(world) == 0)
        try await publish([5], to: world)
        #expect(try await notified(world) == ["5"], "the subscription goes on")
    }

    @Test func `a firing that is delivered again after a kill is throttled once`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(Self.body(#","maxFrequency":0.5"#, item: "events"))
        try await publish([1], "events", to: world)
        #expect(try await notified(world) == ["1"])
        try await publish([2], "events", to: world)
        #expect(try await held(world) == 1)
        let store = world.routes.store
        let row = try #require(try await stores.throttledFirings(in: store).first)
        let held = ThrottledFiring(
            target: .init(subscription: row.subscription, revision: row.revision), device: row.device,
            item: try #require(ItemName("events")), number: 2, body: [], ttl: 60, isAlwaysPushed: false,
            isDistinct: true, milliseconds: 2000,
            buffer: 100)
        #expect(try await store.throttle([held], at: world.routes.domain.time.now()) == [.late])
    }

    @Test func `the waiting firings of a device have a limit of a mebibyte, and another device has its own`() async throws {
        let world = try await SubscriptionWorld()
        let format = #"{"title":"${price}","body":"${name}${name}${name}"}"#
        try await world.subscribe(Self.body(#","maxFrequency":0.001"#, item: "events", format: format))
        let other = try await world.routes.request(.post, "/v1/devices", key: world.clientKey)["credential"]
        try await world.subscribe(Self.body(#","maxFrequency":0.001"#, item: "events", format: format), by: other)
        let long = String(repeating: "x", count: 4096)
        for price in 0..<100 { try await world.publish("events", #"{"price":\#(price),"name":"\#(long)"}"#) }
        try await world.settle()
        let sizes = try await stores.throttledBytes(in: world.routes.store)
        #expect(sizes.count == 2)
        for size in sizes {
            #expect(size <= SubscriptionLimits.throttledBytes && size > SubscriptionLimits.throttledBytes - 20_000)
        }
        #expect(try await notified(world) == ["0"])
        world.advance(seconds: 1000)
        #expect(try await notified(world).first.flatMap(Int.init) ?? 0 > 10, "the oldest went")
        // If none of its firings waits, the new one does not fit.
        let second =
            #"{"items":["stock.A"],"fields":["name"],"format":{"body":"${name}"},"policy":"every","maxFrequency":0.001}"#
        try await world.subscribe(second)
        let before = try await held(world)
        for _ in 0..<30 { try await world.publish("stock.A", #"{"name":"\#(long)"}"#) }
        #expect(try await held(world) <= before + 5)
    }

    static let wrong = [
        #""maxFrequency":0"#, #""maxFrequency":-1"#, #""maxFrequency":1000.5"#, #""maxFrequency":0.000001"#,
        #""maxFrequency":"2""#, #""maxFrequency":1,"bufferSize":0"#, #""maxFrequency":1,"bufferSize":101"#,
        #""maxFrequency":1,"bufferSize":1.5"#, #""bufferSize":5"#, #""maxFrequency":null,"bufferSize":5"#,
    ]

    @Test(arguments: wrong) func `a pace that cannot be is refused`(pace: String) async throws {
        let world = try await SubscriptionWorld()
        #expect(try await world.subscribe(Self.body(",\(pace)"), expecting: 400).code == "field_invalid")
    }

    @Test func `a pace is shown, changed and removed, and is part of the comparison`() async throws {
        let world = try await SubscriptionWorld()
        let body = Self.body(#","maxFrequency":2,"bufferSize":3"#)
        let made = try await world.subscribe(body)
        #expect(made.json?["maxFrequency"] == .integer(2) && made.json?["bufferSize"] == .integer(3))
        let same = try await world.subscribe(Self.body(#","maxFrequency":2.0,"bufferSize":3"#), expecting: 200)
        #expect(same["hash"] == made["hash"])
        let path = "/v1/device/subscriptions/\(made["id"])"
        let changed = try await world.routes.request(.patch, path, key: world.device, #"{"maxFrequency":0.25}"#)
        #expect(changed.json?["maxFrequency"] == .number(0.25) && changed.json?["bufferSize"] == .integer(3))
        #expect(changed["hash"] != made["hash"])
        let standard = try await world.routes.request(.patch, path, key: world.device, #"{"bufferSize":null}"#)
        #expect(standard.json?["maxFrequency"] == .number(0.25) && standard.json?["bufferSize"] == nil)
        let without = try await world.routes.request(.patch, path, key: world.device, #"{"maxFrequency":null}"#)
        #expect(without.json?["maxFrequency"] == nil && without.json?["bufferSize"] == nil)
        try await publish([1], to: world)
        try await publish([2], to: world)
        #expect(try await notified(world) == ["2"])
    }

    // MARK: Always

    private func kept(_ world: SubscriptionWorld) async throws -> Int {
        try await stores.count(.keptPushes, in: world.routes.store)
    }

    @Test(arguments: [("unlessSeen", 0), ("always", 1)])
    func `a firing that is always pushed is sent despite any acknowledgement`(route: String, count: Int) async throws {
        let world = try await SubscriptionWorld()
        let format = #"{"title":"${price}","badge":"auto","custom":{"a":1},"collapse":"c","route":"\#(route)"}"#
        try await world.subscribe(SubscriptionWorld.body(format: format))
        try await publish([11], to: world)
        let fired = try await world.fired()
        #expect(fired.count == 1 && fired[0]["notification"]?["route"] == nil)
        try await world.acknowledgeAll()
        #expect(try await kept(world) == count)
        let pushes = try await world.pushes()
        #expect(pushes.count == count)
        if let push = pushes.first {
            #expect(push["aps"]?["alert"]?["title"] == .string("11") && push["aps"]?["badge"] == .integer(1))
            #expect(push["carillon"]?["message"] != nil && push["a"] == .integer(1))
        }
        #expect(try await kept(world) == 0, "a shown firing is not stored")
    }

    @Test func `a push that is always sent, and that Apple rejected, is sent when it is retried`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(format: #"{"title":"x","route":"always"}"#))
        try await world.publish("stock.ACME", #"{"price":11}"#)
        try await world.settle()
        try await world.acknowledgeAll()
        let domain = world.routes.domain
        let push = try #require(try await domain.outbox.due { domain.gateways.isConfigured($0) }.pushes.first)
        _ = await domain.outbox.ended(push, .wrong(reason: "BadTopic"), hasOther: false)
        #expect(try await kept(world) == 1)
        #expect(try await world.routes.store.requeueParkedPushes(of: AppSerial(1), in: .all, at: domain.time.now()) == 1)
        #expect(try await world.pushes().count == 1)
        #expect(try await kept(world) == 0)
    }

    @Test func `a push that is always sent is the same before and after its message was acknowledged`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(
            SubscriptionWorld.body(format: #"{"title":"x","route":"always"}"#, rest: #","policy":"every""#))
        try await publish([11], to: world)
        let first = try await world.pushes()
        try await publish([12], to: world)
        try await world.acknowledgeAll()
        let second = try await world.pushes()
        #expect(first.count == 1 && second.count == 2)
        #expect(first[0]["carillon"]?["subscription"] == second[1]["carillon"]?["subscription"])
    }

    @Test(arguments: ["remove", "delete", "suspend"])
    func `a firing that is always pushed ends with its subscription and its device`(what: String) async throws {
        let world = try await SubscriptionWorld()
        let id = try await world.subscribe(SubscriptionWorld.body(format: #"{"title":"x","route":"always"}"#))["id"]
        try await publish([11], to: world)
        try await world.acknowledgeAll()
        #expect(try await kept(world) == 1)
        switch what {
        case "remove": _ = try await world.routes.request(.delete, "/v1/device/subscriptions/\(id)", key: world.device)
        case "delete": _ = try await world.routes.request(.delete, "/v1/device", key: world.device)
        default: _ = try await world.routes.request(.post, "/v1/devices/\(world.id)/suspend", key: world.routes.admin)
        }
        #expect(try await world.pushes().isEmpty)
        #expect(try await kept(world) == (what == "suspend" ? 1 : 0))
    }

    @Test func `a polling device immediately gets the pushes that are always sent`() async throws {
        for (route, count) in [("unlessSeen", 0), ("always", 1)] {
            let world = try await SubscriptionWorld()
            try await world.subscribe(SubscriptionWorld.body(format: #"{"title":"x","route":"\#(route)"}"#))
            let id = try #require(DeviceID(world.id))
            let device = try #require(try await world.routes.store.device(id)).serial
            async let poll = world.routes.request(.get, "/v1/inbox?carillon=4&wait=60", key: world.device)
            let sessions = world.routes.domain.runtime.sessions
            try await eventually { sessions.hasWaiters(device) }
            try await publish([11], to: world)
            #expect(try await world.pushes().count == count)
            #expect(try await poll.status == 200)
        }
    }
}
