import CarillonBasics
import CarillonCore
import CarillonSQLite
import CarillonWire
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Items are listed, deleted on request or as they are idle, and closed with the subscriptions on them.
@Suite(.timeLimit(.minutes(1)))
struct ItemLifeTests {
    // MARK: Deleting

    @Test func `a deleted item has no values and no sources, and its subscriptions wait for its first update`() async throws
    {
        let world = try await SubscriptionWorld()
        let path = "/v1/items/stock.ACME"
        let missing = try await world.routes.request(.delete, path, key: world.sender)
        #expect(missing.status == 404 && missing["code"] == "item_unknown")
        for number in 1...3 {
            try await world.publish(
                "stock.ACME", #"{"price":11,"name":"x"}"#, #","source":"s","sequence":\#(number)"#)
        }
        let crossing = try await world.subscribe(
            SubscriptionWorld.body(key: "crossing", rest: #","policy":"everyCrossing""#))["id"]
        let later = try await world.subscribe(SubscriptionWorld.body("price > 50.0", key: "later"))["id"]
        #expect(try await world.routes.request(.delete, path, key: world.device).status == 401)
        #expect(try await world.routes.request(.delete, path, key: world.sender).status == 204)
        #expect(try await world.routes.request(.get, path, key: world.sender).status == 404)
        #expect(try await world.routes.request(.delete, path, key: world.sender).status == 404)
        for id in [crossing, later] { #expect(try await world.status(of: id) == "subscribed") }
        #expect(try await world.titles().isEmpty)
        let first = try await world.publish("stock.ACME", #"{"price":12}"#, #","source":"s","sequence":1"#)
        #expect(first.json?["version"] == .integer(1) && first.json?["repeated"] == .bool(false))
        #expect(try await world.titles() == ["stock.ACME: 12"], "there was nothing before it")
        let item = try await world.routes.request(.get, path, key: world.sender)
        #expect(item.json?["fields"]?["name"] == nil && item.json?["previous"] == nil)
        try await world.publish("stock.ACME", #"{"price":51}"#)
        #expect(try await world.titles().contains("stock.ACME: 51"))
    }

    @Test func `firings that were not delivered go with their item`() async throws {
        let world = try await EngineWorld(try SQLiteStore(inMemory: .init()))
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0")
        try await world.leave(11, version: 2)
        try await world.domain.items.delete(world.item.name, of: world.device.app)
        #expect(try await world.store.firingNumbers(of: world.item).isEmpty)
        try await world.domain.itemEngine.tellRest()
        #expect(try await world.titles().isEmpty)
        try await world.publish(12)
        #expect(try await world.titles() == ["12.0"], "the subscription is armed still")
    }

    @Test func `firings that wait for their pace go with their item`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(
            SubscriptionWorld.body(nil, key: "paced", rest: #","policy":"every","maxFrequency":0.5"#))
        for price in 1...2 { try await world.publish("stock.ACME", #"{"price":\#(price)}"#) }
        try await world.settle()
        #expect(try await world.routes.store.rowCount(of: "held_firing") == 1)
        #expect(try await world.routes.request(.delete, "/v1/items/stock.ACME", key: world.sender).status == 204)
        #expect(try await world.routes.store.rowCount(of: "held_firing") == 0)
        world.advance(seconds: 10)
        _ = try await world.routes.domain.firings.tellHeld()
        #expect(try await world.titles() == ["stock.ACME: 1"])
    }

    @Test func `no update is lost that is accepted while its item is deleted`() async throws {
        let world = try await EngineWorld(try SQLiteStore(inMemory: .init()))
        _ = try await world.subscribe("price > 0.0", .every(coolDownSeconds: 0))
        let engine = world.domain.itemEngine
        var deletions = 0
        for round in 1...20 {
            let updates = (1...50).map { number in
                (
                    item: world.item.name, fields: [WrittenField("price", .number("\(1000 * round + number)"))],
                    place: ItemUpdate.Place?.none
                )
            }
            async let published = world.domain.items.publish(updates, of: world.device.app)
            async let isDeleted = engine.delete(world.item)
            if try await isDeleted { deletions += 1 }
            let results = await published
            #expect(results.allSatisfy { if case .success = $0 { true } else { false } })
            try await world.settle()
            let item = try await world.store.item(world.item)
            // The deletion comes before all of them, between two, or after the last.
            if let item { #expect(item.state.fields["price"]?.text == "\(1000 * round + 50)") }
            let inMemory = try await engine.item(of: world.item)
            #expect(inMemory?.version == item?.version)
        }
        #expect(deletions > 0)
        #expect(await engine.isIdle)
    }

    @Test func `the version begins anew for the next process as well`() async throws {
        let store = try SQLiteStore(inMemory: .init())
        do {
            let world = try await EngineWorld(store)
            for price in [1.0, 2, 11] { try await world.publish(price) }
            _ = try await world.subscribe("price > 10.0", .everyCrossing)
            try await world.domain.items.delete(world.item.name, of: world.device.app)
        }
        let world = try await EngineWorld(store)
        try await world.domain.itemEngine.lookAtNeverFired()
        try await world.publish(12)
        #expect(try await world.titles() == ["12.0"])
        #expect(try await store.item(world.item)?.version == 1)
        let reopened = try await EngineWorld(store)
        try await reopened.domain.itemEngine.lookAtNeverFired()
        try await reopened.publish(13)
        #expect(try await reopened.titles() == ["12.0"])
    }

    // MARK: Lists

    @Test func `items are listed in the order of their names, page by page`() async throws {
        let world = try await SubscriptionWorld()
        for name in ["stock.b", "stock.a", "events", "stock.c", "tock"] { try await world.publish(name, #"{"price":1}"#) }
        try await world.publish("stock.b", #"{"price":2}"#)
        for key in ["x", "y"] { try await world.subscribe(SubscriptionWorld.body(item: "stock.a", key: key)) }
        func list(_ query: String, key: String? = nil) async throws -> RouteFixture.Answer {
            try await world.routes.request(.get, "/v1/items" + query, key: key ?? world.sender)
        }
        func names(_ answer: RouteFixture.Answer) -> [JSONValue?] {
            guard case .array(let items)? = answer.json?["items"] else { return [] }
            return items.map { $0["item"] }
        }
        let all = try await list("")
        #expect(names(all) == ["events", "stock.a", "stock.b", "stock.c", "tock"].map { .string($0) })
        #expect(all.json?["next"] == nil)
        guard case .array(let items)? = all.json?["items"] else { return #expect(Bool(false)) }
        #expect(items[1]["subscriptions"] == .integer(2) && items[1]["version"] == .integer(1))
        #expect(items[2]["subscriptions"] == .integer(0) && items[2]["version"] == .integer(2))
        #expect(items[2]["updatedAt"] == .string("2023-11-14T22:13:20.000Z"))
        let first = try await list("?prefix=stock.&limit=2")
        #expect(names(first) == ["stock.a", "stock.b"].map { .string($0) } && first["next"] == "stock.b")
        let rest = try await list("?prefix=stock.&limit=2&after=stock.b")
        #expect(names(rest) == [.string("stock.c")] && rest.json?["next"] == nil)
        #expect(names(try await list("?prefix=zzz")).isEmpty)
        #expect(try await list("", key: world.routes.admin).status == 400)
        #expect(names(try await list("?app=com.example.app", key: world.routes.admin)).count == 5)
        #expect(try await list("", key: world.device).status == 401)
        for query in ["?limit=0", "?limit=1001", "?before=a", "?limit=1&limit=2"] {
            let refused = try await list(query)
            #expect(refused.status == 400 && refused["code"] == "parameter_invalid", "\(query)")
        }
    }

    // MARK: Idle items

    @Test func `an item without updates and subscriptions is deleted as its rule says`() async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"kept.*"},{"pattern":"*","open":true,"idleSeconds":60}]}"#)
        for name in ["watched", "idle", "busy", "kept.a"] { try await world.publish(name, #"{"price":1}"#) }
        try await world.subscribe(SubscriptionWorld.body(item: "watched"))
        func left() async throws -> [String] {
            var left: [String] = []
            for name in ["watched", "idle", "busy", "kept.a"] {
                let item = try await world.routes.request(.get, "/v1/items/\(name)", key: world.sender)
                if item.status == 200 { left.append(name) }
            }
            return left
        }
        let domain = world.routes.domain
        world.advance(seconds: 59)
        try await domain.items.deleteIdle(at: domain.time.now())
        #expect(try await left().count == 4)
        try await world.publish("busy", #"{"price":2}"#)
        world.advance(seconds: 1)
        try await domain.items.deleteIdle(at: domain.time.now())
        #expect(try await left() == ["watched", "busy", "kept.a"])
        _ = try await world.routes.request(.delete, "/v1/device/subscriptions", key: world.device)
        world.advance(seconds: 60)
        try await domain.items.deleteIdle(at: domain.time.now())
        #expect(try await left() == ["kept.a"])
        let rules = try await world.routes.request(.get, "/v1/apps/com.example.app/items", key: world.routes.admin)
        guard case .array(let list)? = rules.json?["items"] else { return #expect(Bool(false)) }
        #expect(list[0]["idleSeconds"] == nil && list[1]["idleSeconds"] == .integer(60))
    }

    @Test func `an item that has an update or a subscription by now is not idle`() async throws {
        let world = try await EngineWorld(try SQLiteStore(inMemory: .init()))
        try await world.publish(1)
        let now = world.domain.time.now()
        let engine = world.domain.itemEngine
        #expect(try await !engine.delete(world.item, ifIdleSince: now.adding(seconds: -60)))
        let subscription = try await world.subscribe("price > 10.0", key: "k")
        #expect(try await !engine.delete(world.item, ifIdleSince: now.adding(seconds: 60)))
        _ = try await world.domain.subscriptions.remove(.init(id: subscription.id), of: world.device)
        #expect(try await engine.delete(world.item, ifIdleSince: now.adding(seconds: 60)))
        #expect(try await !engine.delete(world.item, ifIdleSince: now.adding(seconds: 60)))
    }

    private final class Ticks: Sendable {
        let now = Mutex<Int64>(0)
    }

    @Test func `a server that runs long enough deletes idle items by itself`() async throws {
        let ticks = Ticks()
        let world = try await EngineWorld(
            try SQLiteStore(inMemory: .init()), ticks: TickSource { ticks.now.withLock { $0 } })
        let rules = try #require(JSONValue(parsing: Array(#"{"items":[{"pattern":"*","idleSeconds":60}]}"#.utf8)))
        try await world.domain.items.setRules(try ItemRules(rules), of: world.device.app)
        try await world.publish(1)
        try await world.store.run("UPDATE item SET updated_at = updated_at - 61000")
        ticks.now.withLock { $0 = 7200 * 1_000_000_000 }
        let (settings, logger) = (ServerSettings(dataDirectory: ""), world.domain.logger)
        let collector = DeviceCollector(domain: world.domain, settings: settings, logger: logger)
        let service = Sweeper(
            store: world.store, domain: world.domain, collector: collector, settings: settings, logger: logger)
        let sweeper = Task { try await service.run() }
        try await eventually { try await world.store.item(world.item) == nil }
        sweeper.cancel()
        try? await sweeper.value
    }

    // MARK: Closed items

    @Test func `rules that close an item end the subscriptions on it, and say how many`() async throws {
        let world = try await SubscriptionWorld()
        let other = try await world.routes.request(.post, "/v1/devices", key: world.clientKey)["credential"]
        try await world.subscribe(SubscriptionWorld.body(key: "a"))
        try await world.subscribe(SubscriptionWorld.body(key: "a"), by: other)
        let kept = try await world.subscribe(SubscriptionWorld.body(item: "events", key: "kept"))["id"]
        func several(_ items: String, _ key: String) -> String {
            #"{"items":[\#(items)],"fields":["price"],"format":{"title":"x"},"trigger":"price > 10.0","key":"\#(key)"}"#
        }
        try await world.subscribe(several(#""events","stock.B""#, "b"))
        try await world.subscribe(several(#""stock.C","stock.ACME""#, "c"))
        let closing = #"{"items":[{"pattern":"stock.*","open":false},{"pattern":"events","open":true,"mode":"distinct"}]}"#
        func put(_ query: String = "") async throws -> RouteFixture.Answer {
            try await world.routes.request(
                .put, "/v1/apps/com.example.app/items" + query, key: world.routes.admin, closing)
        }
        func keys(of device: String) async throws -> Int {
            let list = try await world.routes.request(.get, "/v1/device/subscriptions", key: device)
            guard case .array(let subscriptions)? = list.json?["subscriptions"] else { return -1 }
            return subscriptions.count
        }
        #expect(try await put("?validate=maybe").status == 400)
        #expect(try await put("?valid=true").status == 400)
        #expect(try await put("?validate=true").json?["ends"] == .integer(4))
        #expect(try await keys(of: world.device) == 4)
        try await world.publish("stock.ACME", #"{"price":1}"#)
        #expect(try await put().json?["ends"] == .integer(4))
        #expect(try await keys(of: world.device) == 1)
        #expect(try await keys(of: other) == 0)
        #expect(try await world.status(of: kept) == "subscribed")
        try await world.publish("stock.ACME", #"{"price":11}"#)
        #expect(try await world.titles().isEmpty)
        #expect(try await world.routes.store.rowCount(of: "subscription") == 1)
        #expect(try await put().json?["ends"] == .integer(0))
        let refused = try await world.subscribe(SubscriptionWorld.body(key: "a"), expecting: 403)
        #expect(refused["code"] == "item_closed")
    }

    @Test func `a subscription that is made while its item is closed ends with that`() async throws {
        let world = try await EngineWorld(try SQLiteStore(inMemory: .init()))
        // Other rules are written after these were read for the subscription.
        try await world.store.run(
            """
            CREATE TRIGGER closed AFTER INSERT ON subscription
            BEGIN UPDATE item_rules SET document = '{"items":[]}'; END
            """)
        let (items, app) = (world.domain.items, world.device.app)
        world.store.onCommit { items.forget(app) }
        let refusal = await #expect(throws: Refusal.self) { _ = try await world.subscribe("price > 10.0") }
        #expect(refusal?.code == .itemClosed)
        #expect(try await world.store.rowCount(of: "subscription") == 0)
    }

    @Test func `many subscriptions are counted and ended part by part`() async throws {
        let world = try await EngineWorld(try SQLiteStore(inMemory: .init()))
        let most = 501
        for number in 0..<most { _ = try await world.subscribe("price > \(number).0", key: "\(number)") }
        #expect(try await world.domain.subscriptions.countClosed(by: ItemRules(), of: world.device.app) == most)
        #expect(try await world.domain.subscriptions.setRules(ItemRules(), of: world.device.app) == most)
        #expect(try await world.store.rowCount(of: "subscription") == 0)
        #expect(await world.domain.itemEngine.population.watches == 0)
    }
}
