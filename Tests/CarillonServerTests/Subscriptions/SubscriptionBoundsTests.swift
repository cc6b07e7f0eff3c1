import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// How many subscriptions, items and conditions there may be, and how often they are changed.
@Suite(.timeLimit(.minutes(5)))
struct SubscriptionBoundsTests {
    private func refused(_ world: SubscriptionWorld, _ body: String) async throws -> RouteFixture.Answer {
        try await world.routes.request(.post, "/v1/device/subscriptions", key: world.device, body)
    }

    @Test func `rules apply from the moment that they are set`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(key: "a"))
        let closed = #"{"items":[{"pattern":"stock.*","open":false}]}"#
        #expect(
            try await world.routes.request(.put, "/v1/apps/com.example.app/items", key: world.routes.admin, closed).status
                == 200)
        #expect(try await refused(world, SubscriptionWorld.body(key: "b")).code == "item_closed")
        try await world.publish("stock.ACME", #"{"price":11}"#)
        #expect(try await world.titles().isEmpty, "the one that was there ended")
    }

    private static func rules(cost: Int) -> String {
        String(SubscriptionWorld.openRules.dropLast()) + #","conditionCost":\#(cost)}"#
    }

    @Test func `an app sets the cost limits of its conditions`() async throws {
        let condition = SubscriptionWorld.body("price + price + price + price > 1.0", key: "k")
        let world = try await SubscriptionWorld(rules: Self.rules(cost: 7))
        let answer = try await refused(world, condition)
        #expect(answer.code == "trigger_forbidden" && answer["detail"].contains("at least 8 units"))
        try await SubscriptionWorld(rules: Self.rules(cost: 8)).subscribe(condition)
    }

    @Test func `an evaluation that costs more than the app allows ends, until the app allows more`() async throws {
        let world = try await SubscriptionWorld(rules: Self.rules(cost: 100))
        let format = #"{"title":"found"}"#
        let id = try await world.subscribe(
            SubscriptionWorld.body("name.contains('b') || name.contains('c')", key: "a", format: format))["id"]
        try await world.subscribe(SubscriptionWorld.body("price > 1.0", key: "b", format: #"{"title":"price"}"#))
        let long = #"{"price":2,"name":"\#(String(repeating: "a", count: 2000))b"}"#
        try await world.publish("stock.ACME", long)
        #expect(try await world.titles() == ["price"])
        let explanation = try await world.routes.request(
            .get, "/v1/devices/\(world.id)/subscriptions/\(id)/explanation", key: world.routes.admin)
        let text = String(decoding: explanation.body, as: UTF8.self)
        #expect(text.contains("no_value") && text.contains("exceeded its cost limit"), "\(text)")
        let changed = try await world.routes.request(
            .put, "/v1/apps/com.example.app/items", key: world.routes.admin, Self.rules(cost: 1000))
        #expect(changed.status == 200)
        try await world.publish("stock.ACME", long)
        #expect(try await world.titles().contains("found"))
    }

    @Test func `the cost that an app allows counts for items that come back from the disk`() async throws {
        let world = try await SubscriptionWorld(rules: Self.rules(cost: 100))
        try await world.subscribe(
            SubscriptionWorld.body("name.contains('b')", key: "a", format: #"{"title":"found"}"#))
        let app = try #require(AppID("com.example.app"))
        let serial = try #require(try await world.routes.domain.apps.serial(of: app))
        await world.routes.domain.itemEngine.forget(serial)
        try await world.publish("stock.ACME", #"{"name":"\#(String(repeating: "a", count: 2000))b"}"#)
        #expect(try await world.titles() == [])
        try await world.publish("stock.ACME", #"{"name":"b"}"#)
        #expect(try await world.titles() == ["found"])
    }

    @Test func `the engine reads the cost limit of an app from the store`() async throws {
        let world = try await SubscriptionWorld(rules: Self.rules(cost: 100))
        try await world.subscribe(
            SubscriptionWorld.body("name.contains('b')", key: "a", format: #"{"title":"found"}"#))
        let long = #"{"name":"\#(String(repeating: "a", count: 2000))b"}"#
        try await world.publish("stock.ACME", long)
        #expect(try await world.titles() == [])
        let app = try #require(AppID("com.example.app"))
        let serial = try #require(try await world.routes.domain.apps.serial(of: app))
        // The store has them, with any caller that set them.
        let key = AppDocument.Key(.itemRules, of: serial)
        let rules = Array(Self.rules(cost: 1000).utf8)
        _ = try await world.routes.store.putDocument(rules, as: key, at: Timestamp(milliseconds: 1))
        try await world.publish("stock.ACME", long)
        #expect(try await world.titles() == ["found"])
    }

    @Test func `an app has a limited number of items and subscriptions`() async throws {
        let world = try await SubscriptionWorld()
        try await stores.setItemCount(ItemLimits.itemsPerApp - 1, in: world.routes.store)
        try await world.publish("stock.A", #"{"price":1}"#)
        #expect(try await world.publish("stock.B", #"{"price":1}"#, expecting: 409).code == "items_too_many")
        try await world.publish("stock.A", #"{"price":2}"#)
        try await stores.setSubscriptionCount(SubscriptionLimits.perApp - 1, in: world.routes.store)
        try await world.subscribe(SubscriptionWorld.body(key: "a"))
        #expect(try await refused(world, SubscriptionWorld.body(key: "b")).code == "subscriptions_too_many")
        try await world.subscribe(SubscriptionWorld.body(key: "a"), expecting: 200)
    }

    @Test func `an item has a limited number of conditions without an index, and any number of others`() async throws {
        var limits = ItemEngine.Limits()
        limits.unguardedPerItem = 2
        limits.quotaPercent = 100
        let world = try await SubscriptionWorld(itemLimits: limits)
        func body(_ number: Int) -> String {
            SubscriptionWorld.body("name.contains('x\(number)')", key: "\(number)")
        }
        try await world.subscribe(body(0))
        try await world.subscribe(body(1))
        // They are counted in the item, which the second one loads at the latest.
        let shapes = await world.routes.domain.itemEngine.population.shapes
        for trigger in ["name.contains('x2')", "price + 1.0 > 2.0", "name.startsWith('x') || price < 1.0"] {
            let refused = try await refused(world, SubscriptionWorld.body(trigger, key: "other"))
            #expect(refused.code == "trigger_forbidden", "\(trigger)")
        }
        #expect(await world.routes.domain.itemEngine.population.shapes == shapes, "a refused subscription leaves nothing")
        // Conditions with a part that no index decides have a limit of their own.
        for number in 0..<2 {
            try await world.subscribe(
                SubscriptionWorld.body("price > 7.0 && name.contains('y\(number)')", key: "guarded\(number)"))
        }
        let third = try await refused(world, SubscriptionWorld.body("price > 7.0 && name.contains('z')", key: "other"))
        #expect(third.code == "trigger_forbidden")
        for number in 0..<5 {
            try await world.subscribe(SubscriptionWorld.body("price > \(number).0", key: "indexed\(number)"))
        }
        try await world.subscribe(body(2).replacing("stock.ACME", with: "stock.B"))
        _ = try await world.routes.request(
            .delete, "/v1/device/subscriptions?key=guarded0", key: world.device)
        try await world.subscribe(SubscriptionWorld.body("price > 7.0 && name.contains('z')", key: "other"))
    }

    @Test func `the constants of an item's conditions have a limit in bytes, each counted once`() async throws {
        var limits = ItemEngine.Limits()
        limits.constantBytesPerItem = 2500
        limits.quotaPercent = 100
        let world = try await SubscriptionWorld(itemLimits: limits)
        func body(_ letter: String, _ key: String) -> String {
            SubscriptionWorld.body("name == '\(String(repeating: letter, count: 1000))'", key: key)
        }
        for key in ["1", "2"] { try await world.subscribe(body("a", key)) }
        try await world.subscribe(body("b", "3"))
        let refused = try await refused(world, body("c", "4"))
        #expect(refused.code == "trigger_forbidden")
        _ = try await world.routes.request(.delete, "/v1/device/subscriptions?key=3", key: world.device)
        try await world.subscribe(body("c", "4"))
    }

    @Test func `the requests of a device have a rate limit`() async throws {
        var rateLimits = RateLimits.Settings()
        rateLimits.deviceRegistrations = Rate(perSecond: 1, burst: 3)
        let world = try await SubscriptionWorld(rateLimits, ticks: TickSource { 0 })
        // One of them was the device's own, of its push token.
        let id = try await world.subscribe(SubscriptionWorld.body(key: "a"))["id"]
        try await world.subscribe(SubscriptionWorld.body(key: "b"))
        for (method, path, body) in [
            (HTTPRequest.Method.post, "", SubscriptionWorld.body(key: "c")), (.patch, "/\(id)", "{}"),
            (.put, "", #"{"keys":{}}"#), (.delete, "/\(id)", ""), (.delete, "?tag=x", ""),
        ] {
            let answer = try await world.routes.request(
                method, "/v1/device/subscriptions" + path, key: world.device, body)
            #expect(answer.code == "rate_limited", "\(method)")
        }
        let list = try await world.routes.request(.get, "/v1/device/subscriptions", key: world.device)
        #expect(String(decoding: list.body, as: UTF8.self).contains(#""key":"b""#))
    }

    @Test func `custom values lie eight deep in each other`() async throws {
        let deep = String(repeating: "[", count: 7) + String(repeating: "]", count: 7)
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(format: #"{"title":"x","custom":{"a":\#(deep)}}"#))
    }

    @Test func `a list returns its next position, or none at its end`() async throws {
        let world = try await SubscriptionWorld()
        for key in ["a", "b", "c"] { try await world.subscribe(SubscriptionWorld.body(key: key)) }
        let first = try await world.routes.request(.get, "/v1/device/subscriptions?limit=2", key: world.device)
        #expect(!first["next"].isEmpty)
        let second = try await world.routes.request(
            .get, "/v1/device/subscriptions?limit=2&after=\(first["next"])", key: world.device)
        #expect(second["next"].isEmpty && String(decoding: second.body, as: UTF8.self).contains(#""key":"c""#))
    }

    @Test func `a declared set is compared with all that the device has`() async throws {
        let world = try await SubscriptionWorld(
            rules: String(SubscriptionWorld.openRules.dropLast()) + #","subscriptionsPerDevice":600}"#)
        for number in 0..<501 {
            try await world.subscribe(
                #"{"items":["stock.A"],"fields":["x"],"format":{"title":"x"},"key":"\#(number)"}"#)
        }
        let answer = try await world.routes.request(.put, "/v1/device/subscriptions", key: world.device, #"{"keys":{}}"#)
        #expect(answer.json?["removed"] == .integer(501))
    }

    @Test func `an item is loaded with all subscriptions on it`() async throws {
        let store = try await stores.open()
        let world = try await EngineWorld(store)
        for number in 0..<7 { _ = try await world.subscribe("price > 1.0", key: "\(number)") }
        var limits = ItemEngine.Limits()
        limits.armedAtOnce = 3
        let again = try await EngineWorld(store, limits: limits)
        try await again.publish(0)
        #expect(await again.domain.itemEngine.population.watches == 7)
    }

    @Test func `the first hundred refusals of a stream are reported, and the others are counted`() {
        var taken = TakenUpdates()
        for line in 1...150 { taken.refuse(line, Refusal(.itemBusy, "busy")) }
        guard case .array(let notified)? = taken.json["refusals"] else {
            Issue.record("none is reported")
            return
        }
        #expect(notified.count == 100 && taken.json["refused"] == .integer(150))
    }

    @Test func `subscriptions with a tag are removed, and others stay`() async throws {
        let world = try await SubscriptionWorld()
        for (key, tags) in [("a", #"["x","y"]"#), ("b", #"["y"]"#), ("c", "[]")] {
            try await world.subscribe(SubscriptionWorld.body(key: key, rest: #","tags":\#(tags)"#))
        }
        func remove(_ query: String) async throws -> JSONValue? {
            try await world.routes.request(.delete, "/v1/device/subscriptions?\(query)", key: world.device).json?["removed"]
        }
        #expect(try await remove("tag=z") == .integer(0))
        #expect(try await remove("tag=x&key=b") == .integer(0))
        #expect(try await remove("tag=x") == .integer(1))
        #expect(try await remove("tag=y") == .integer(1))
        #expect(try await remove("key=c") == .integer(1))
    }
}
