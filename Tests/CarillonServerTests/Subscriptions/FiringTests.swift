import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// The subscriptions that fire, their receivers, and the shown texts.
@Suite(.timeLimit(.minutes(5)))
struct FiringTests {
    @Test func `a price that crosses fires once, with the text and the badge, and again when it is armed anew`() async throws
    {
        let world = try await SubscriptionWorld()
        let made = try await world.subscribe()
        let id = made["id"]
        for price in ["9", "10.0", "10.50", "11", "9", "12"] {
            try await world.publish("stock.ACME", #"{"price":\#(price)}"#)
        }
        #expect(try await world.titles() == ["stock.ACME: 10.50"])
        #expect(try await world.status(of: id) == "triggered")
        let pushes = try await world.pushes()
        #expect(pushes.count == 1)
        #expect(pushes.first?["aps"]?["badge"] == .integer(1))
        #expect(pushes.first?["aps"]?["alert"]?["title"] == .string("stock.ACME: 10.50"))
        #expect(pushes.first?["carillon"]?["subscription"] == .string(id))
        try await world.acknowledgeAll()
        // An empty change arms it, and the condition is true: it fires at once.
        let armed = try await world.routes.request(
            .patch, "/v1/device/subscriptions/\(id)", key: world.device, "{}")
        #expect(armed.status == 200)
        #expect(try await world.titles() == ["stock.ACME: 12"])
        #expect(try await world.pushes().last?["aps"]?["badge"] == .integer(2))
        #expect(try await world.status(of: id) == "triggered")
    }

    @Test func `a condition that is already true fires when it is created, and a false one fires later`() async throws {
        let world = try await SubscriptionWorld()
        try await world.publish("stock.ACME", #"{"price":11,"name":"a"}"#)
        try await world.subscribe(SubscriptionWorld.body("price > 10.0 && name == 'a'", key: "held"))
        #expect(try await world.titles() == ["stock.ACME: 11"])
        try await world.subscribe(SubscriptionWorld.body("price > 11.0", key: "waits"))
        try await world.subscribe(SubscriptionWorld.body(nil, key: "every update", rest: #","policy":"every""#))
        #expect(try await world.titles().count == 1, "without a condition the next update is waited for")
        try await world.publish("stock.ACME", #"{"name":"b"}"#)
        #expect(try await world.titles() == ["stock.ACME: 11", "stock.ACME: 11"])
    }

    @Test func `a crossing fires each time, and an identical subscription again changes nothing`() async throws {
        let world = try await SubscriptionWorld()
        let body = SubscriptionWorld.body(key: "k", rest: #","policy":"everyCrossing""#)
        let id = try await world.subscribe(body)["id"]
        var expected: [String] = []
        for (price, fires) in [(11, true), (12, false), (9, false), (13, true), (14, false)] {
            try await world.publish("stock.ACME", #"{"price":\#(price)}"#)
            #expect(try await world.subscribe(body, expecting: 200)["id"] == id, "no duplicate, and no arming")
            if fires { expected = ["stock.ACME: \(price)"] }
            // A newer firing replaces the waiting one.
            #expect(try await world.titles() == expected)
        }
        #expect(try await world.status(of: id) == "subscribed")
        #expect(try await world.pushes().map { $0["aps"]?["alert"]?["title"] } == [.string("stock.ACME: 13")])
    }

    @Test func `a subscription without a trigger fires with each update, unless its policy differs`() async throws {
        let world = try await SubscriptionWorld()
        let each = try await world.subscribe(SubscriptionWorld.body(nil, key: "each"))["id"]
        let once = try await world.subscribe(SubscriptionWorld.body(nil, key: "once", rest: #","policy":"once""#))["id"]
        let made = try await world.subscribe(SubscriptionWorld.body("price > 100.0", key: "made"))["id"]
        // Without its trigger it is one of each update.
        let path = "/v1/device/subscriptions/\(made)"
        let changed = try await world.routes.request(.patch, path, key: world.device, #"{"trigger":null}"#)
        #expect(changed["policy"] == "every")
        for price in 1...3 {
            try await world.publish("stock.ACME", #"{"price":\#(price)}"#)
            #expect(try await world.titles().count { $0 == "stock.ACME: \(price)" } == (price == 1 ? 3 : 2))
        }
        #expect(try await world.status(of: each) == "subscribed")
        #expect(try await world.status(of: once) == "triggered")
        let back = try await world.routes.request(.patch, path, key: world.device, #"{"trigger":"price > 9.0"}"#)
        #expect(back["policy"] == "every", "the earlier value is returned, and stays")
    }

    @Test func `the same with its members in another order changes nothing`() async throws {
        let world = try await SubscriptionWorld()
        let body = { (format: String) in SubscriptionWorld.body(key: "k", format: format) }
        let id = try await world.subscribe(body(#"{"title":"t","body":"b","custom":{"x":1,"y":2}}"#))["id"]
        try await world.publish("stock.ACME", #"{"price":11}"#)
        try await world.settle()
        #expect(try await world.status(of: id) == "triggered")
        try await world.subscribe(body(#"{"custom":{"y":2,"x":1},"body":"b","title":"t"}"#), expecting: 200)
        #expect(try await world.status(of: id) == "triggered")
        try await world.subscribe(body(#"{"body":"c","title":"t"}"#), expecting: 200)
        #expect(try await world.titles().last == "t", "a change arms it, and it fired again")
    }

    @Test func `the badge counts over all subscriptions of a device, until it is reset`() async throws {
        let world = try await SubscriptionWorld()
        for key in ["a", "b"] {
            try await world.subscribe(SubscriptionWorld.body(key: key, rest: #","policy":"everyCrossing""#))
        }
        func cross() async throws -> [Int] {
            for price in [1, 11] { try await world.publish("stock.ACME", #"{"price":\#(price)}"#) }
            return try await world.pushes().suffix(2).map { push in
                if case .integer(let badge)? = push["aps"]?["badge"] { badge } else { 0 }
            }.sorted()
        }
        #expect(try await cross() == [1, 2])
        #expect(try await world.routes.request(.post, "/v1/device/badge/reset", key: world.device).status == 204)
        #expect(try await cross() == [1, 2])
    }

    @Test func `pushes of many subscriptions are sent at once, up to a limit, and only accepted ones are counted`()
        async throws
    {
        let world = try await SubscriptionWorld()
        for number in 0..<(PushLimits.triggersPerDevice + 5) {
            let format = number == 100 ? #"{"title":"x","badge":"auto"}"# : #"{"title":"x"}"#
            try await world.subscribe(SubscriptionWorld.body("price > 10.0", key: "\(number)", format: format))
        }
        try await world.publish("stock.ACME", #"{"price":11}"#)
        try await world.settle()
        let domain = world.routes.domain
        let due = try await domain.outbox.due { _ in true }.pushes
        let shown = due.compactMap { push -> Int? in if case .alert(_, _, let badge) = push.content { badge } else { nil } }
        #expect(shown.count == PushLimits.triggersPerDevice)
        #expect(shown.reduce(0, +) == 1)
        #expect(due.count == PushLimits.triggersPerDevice + 1, "one wake covers the others")
    }

    @Test func `a cool-down delays firings`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(rest: #","policy":"every","coolDown":60"#))
        for (wait, price, shown) in [(0, 11, 11), (59, 12, 11), (1, 13, 13), (1, 14, 13)] {
            world.advance(seconds: Int64(wait))
            try await world.publish("stock.ACME", #"{"price":\#(price)}"#)
            #expect(try await world.titles() == ["stock.ACME: \(shown)"])
        }
    }

    @Test func `a clock that was set back delays no firing`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(rest: #","policy":"every","coolDown":60"#))
        for (wait, price) in [(0, 11), (-3600, 12)] {
            world.advance(seconds: Int64(wait))
            try await world.publish("stock.ACME", #"{"price":\#(price)}"#)
            #expect(try await world.titles() == ["stock.ACME: \(price)"])
        }
    }

    @Test func `a long value is shortened in the push, and whole in the inbox`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(format: #"{"title":"${name}","body":"b"}"#))
        let name = String(repeating: "ä", count: 2048)
        try await world.publish("stock.ACME", #"{"price":11,"name":"\#(name)"}"#)
        #expect(try await world.fired().first?["notification"]?["title"] == .string(name))
        let push = try #require(try await world.pushes().first)
        guard case .string(let title)? = push["aps"]?["alert"]?["title"] else {
            Issue.record("nothing is shown")
            return
        }
        #expect(title.hasPrefix("äää") && title.hasSuffix("ä…") && title.count > 1700)
        #expect(push["aps"]?["alert"]?["body"] == .string("b"))
        #expect(push.bytes.count <= 4096)
        #expect(try await stores.shortenedPushes(in: world.routes.store) == [true])
    }

    @Test func `a firing that is too large without its texts wakes the app, which finds it`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(format: #"{"title":"x","custom":{"n":"${name}"}}"#))
        let name = String(repeating: "n", count: 4000)
        try await world.publish("stock.ACME", #"{"price":11,"name":"\#(name)"}"#)
        #expect(try await world.fired().first?["notification"]?["custom"]?["n"] == .string(name))
        let push = try #require(try await world.pushes().first)
        #expect(push["aps"]?["content-available"] == .integer(1) && push["aps"]?["alert"] == nil)
    }

    @Test func `a notification may have 4096 bytes, and not one more, when it is made and when it is rendered`() async throws
    {
        let short = FiredNotification(
            subscription: SubscriptionID(Bytes16(high: 1, low: 1)), key: nil, item: "stock.ACME", at: 1_700_000_000_000,
            notification: .object([.init(name: "title", value: .string("t"))]))
        let room = 4097 - PushRendering.payloadSize(of: short)
        for (excess, status) in [(0, 201), (1, 400)] {
            let title = String(repeating: "t", count: room + excess)
            let world = try await SubscriptionWorld()
            let answer = try await world.subscribe(
                SubscriptionWorld.body(format: #"{"title":"\#(title)"}"#), expecting: status)
            if status == 400 { #expect(answer.code == "notification_too_large") }
        }
        for excess in 0...1 {
            let world = try await SubscriptionWorld()
            try await world.subscribe(SubscriptionWorld.body(format: #"{"title":"${name}"}"#))
            let name = String(repeating: "n", count: room + excess)
            try await world.publish("stock.ACME", #"{"price":11,"name":"\#(name)"}"#)
            let push = try #require(try await world.pushes().first)
            guard case .string(let title)? = push["aps"]?["alert"]?["title"] else {
                Issue.record("nothing is shown")
                continue
            }
            #expect((title == name) == (excess == 0))
        }
    }

    @Test func `one of several items fires for all`() async throws {
        let world = try await SubscriptionWorld()
        let body = SubscriptionWorld.body().replacing(#"["stock.ACME"]"#, with: #"["stock.A","stock.B"]"#)
        let id = try await world.subscribe(body)["id"]
        try await world.publish("stock.A", #"{"price":1}"#)
        try await world.publish("stock.B", #"{"price":11}"#)
        #expect(try await world.titles() == ["stock.B: 11"])
        #expect(await world.routes.domain.itemEngine.population.watches == 0)
        try await world.publish("stock.A", #"{"price":12}"#)
        #expect(try await world.titles() == ["stock.B: 11"])
        #expect(try await world.status(of: id) == "triggered")
    }

    @Test func `an expired subscription fires no more, also before it is swept`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(rest: #","expiresAt":"2023-11-14T22:13:30Z""#))
        world.advance(seconds: 10)
        try await world.publish("stock.ACME", #"{"price":11}"#)
        #expect(try await world.titles().isEmpty)
    }

    @Test func `a suspended device receives nothing, and after its resumption the conditions of the next update`()
        async throws
    {
        let world = try await SubscriptionWorld()
        let id = try await world.subscribe()["id"]
        let suspend = "/v1/devices/\(world.id)/suspend"
        #expect(try await world.routes.request(.post, suspend, key: world.routes.admin).status == 200)
        #expect(await world.routes.domain.itemEngine.population.watches == 0)
        try await world.publish("stock.ACME", #"{"price":11}"#)
        #expect(try await world.titles().isEmpty)
        #expect(try await world.status(of: id) == "subscribed")
        let refused = try await world.subscribe(SubscriptionWorld.body(key: "new"), expecting: 409)
        #expect(refused.code == "device_suspended")
        let resume = "/v1/devices/\(world.id)/resume"
        #expect(try await world.routes.request(.post, resume, key: world.routes.admin).status == 200)
        #expect(try await world.titles().isEmpty)
        try await world.publish("stock.ACME", #"{"price":12}"#)
        #expect(try await world.titles() == ["stock.ACME: 12"])
    }

    @Test func `a removed or expired subscription fires no more, and its waiting firings are removed`() async throws {
        let world = try await SubscriptionWorld()
        var ids: [String] = []
        for (key, rest) in [("a", ""), ("b", #","tags":["t"]"#), ("c", #","expiresAt":"2023-11-14T23:00:00Z""#), ("d", "")] {
            ids.append(try await world.subscribe(SubscriptionWorld.body("price > 10.0", key: key, rest: rest))["id"])
        }
        try await world.publish("stock.ACME", #"{"price":11}"#)
        #expect(try await world.fired().count == 4)
        let routes = world.routes
        #expect(try await routes.request(.delete, "/v1/device/subscriptions/\(ids[0])", key: world.device).status == 204)
        #expect(try await routes.request(.delete, "/v1/device/subscriptions/\(ids[0])", key: world.device).status == 404)
        #expect(try await world.fired().count == 3)
        let some = try await routes.request(.delete, "/v1/device/subscriptions?tag=t", key: world.device)
        #expect(some.json?["removed"] == .integer(1))
        world.advance(seconds: 3600)
        try await routes.domain.subscriptions.endExpired()
        try await routes.domain.subscriptions.removeEnded()
        #expect(try await world.fired().map { $0["key"] } == [.string("d")])
        let none = try await routes.request(.delete, "/v1/device/subscriptions?status=subscribed", key: world.device)
        #expect(none.json?["removed"] == .integer(0))
        let all = try await routes.request(.delete, "/v1/device/subscriptions", key: world.device)
        #expect(all.json?["removed"] == .integer(1))
        #expect(try await world.fired().isEmpty)
        #expect(try await world.pushes().isEmpty)
        #expect(await routes.domain.itemEngine.population.watches == 0)
        // The key is free again.
        try await world.subscribe(SubscriptionWorld.body("price > 10.0", key: "a"))
    }

    @Test func `a device that is deleted leaves nothing behind`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe()
        #expect(await world.routes.domain.itemEngine.population.watches == 1)
        #expect(try await world.routes.request(.delete, "/v1/device", key: world.device).status == 204)
        try await world.routes.domain.subscriptions.removeEnded()
        #expect(await world.routes.domain.itemEngine.population.watches == 0)
        try await world.publish("stock.ACME", #"{"price":11}"#)
    }

    @Test func `an update with a repeated count of its source is not accepted again`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(nil, rest: #","policy":"every""#))
        let place = #","source":"feed","sequence":7"#
        let first = try await world.publish("stock.ACME", #"{"price":1}"#, place)
        #expect(first.json?["version"] == .integer(1) && first.json?["repeated"] == .bool(false))
        for sequence in [7, 6] {
            let again = try await world.publish("stock.ACME", #"{"price":2}"#, #","source":"feed","sequence":\#(sequence)"#)
            #expect(again.json?["version"] == .integer(1) && again.json?["repeated"] == .bool(true))
        }
        try await world.publish("stock.ACME", #"{"price":3}"#, #","source":"other","sequence":1"#)
        try await world.publish("stock.ACME", #"{"price":4}"#, #","source":"feed","sequence":8"#)
        #expect(try await world.titles() == ["stock.ACME: 4"])
        #expect(try await world.pushes().count == 1)
        let item = try await world.routes.request(.get, "/v1/items/stock.ACME", key: world.sender)
        #expect(item.json?["version"] == .integer(3))
    }

    @Test func `an item is read with the digits of its publisher, and its previous values`() async throws {
        let world = try await SubscriptionWorld()
        try await world.publish("stock.%C3%84%20%25", #"{"price":1.10,"name":"x","none":null,"is":true}"#)
        try await world.publish("stock.%C3%84%20%25", #"{"price":1e3}"#)
        let item = try await world.routes.request(.get, "/v1/items/stock.%C3%84%20%25", key: world.sender)
        let text = String(decoding: item.body, as: UTF8.self)
        #expect(text.contains(#""fields":{"is":true,"name":"x","none":null,"price":1e3}"#), "\(text)")
        #expect(text.contains(#""previous":{"is":true,"name":"x","none":null,"price":1.10}"#), "\(text)")
        #expect(item["item"] == "stock.Ä %")
        #expect(item["mode"] == "merge")
        try await world.publish("events", #"{"a":1}"#)
        try await world.publish("events", #"{"b":2}"#)
        let distinct = try await world.routes.request(.get, "/v1/items/events", key: world.sender)
        #expect(distinct.json?["fields"] == .object([.init(name: "b", value: .integer(2))]))
        #expect(try await world.routes.request(.get, "/v1/items/none", key: world.sender).code == "item_unknown")
    }
}
