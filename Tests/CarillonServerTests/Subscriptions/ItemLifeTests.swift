import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Items are listed, deleted on request or as they are idle, and closed with the subscriptions on them.
@Suite(.timeLimit(.minutes(5)))
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
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0")
        try await world.leave(11, version: 2)
        try await world.domain.items.delete(world.item.name, of: world.device.app)
        #expect(try await world.store.firingNumbers(of: world.item).isEmpty)
        try await world.domain.itemEngine.notifyRest()
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
        #expect(try await stores.count(.throttledFirings, in: world.routes.store) == 1)
        #expect(try await world.routes.request(.delete, "/v1/items/stock.ACME", key: world.sender).status == 204)
        #expect(try await stores.count(.throttledFirings, in: world.routes.store) == 0)
        world.advance(seconds: 10)
        _ = try await world.routes.domain.firings.notifyThrottled()
        #expect(try await world.titles() == ["stock.ACME: 1"])
    }

    @Test func `a firing that is being delivered while its item is deleted is not delivered afterwards`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0")
        try await world.leave(11, version: 2)
        guard case .readable(let firing)? = try await world.store.nextFiring(of: world.item) else {
            return #expect(Bool(false))
        }
        try await world.domain.items.delete(world.item.name, of: world.device.app)
        #expect(await world.domain.itemEngine.notify(firing))
        #expect(try await world.titles().isEmpty)
        try await world.publish(2)
        #expect(await world.domain.itemEngine.notify(firing))
        #expect(try await world.titles().isEmpty, "the item is there again")
        try await world.publish(12)
        #expect(try await world.titles() == ["12.0"], "the subscription is armed still")
    }

    @Test func `a deletion that is not written changes nothing`() async throws {
        let world = try await EngineWorld(stores.open())
        try await paced(on: world)
        stores.refuseChanges(of: world.store, with: StoreFault(.full, "the disk is full"))
        await #expect(throws: StoreFault.self) { _ = try await world.domain.itemEngine.delete(world.item) }
        stores.refuseChanges(of: world.store, with: nil)
        #expect(try await stores.count(.throttledFirings, in: world.store) == 1)
        #expect(try await stores.lastFirings(in: world.store).allSatisfy { $0 > 0 })
        try await world.publish(3)
        #expect(try await world.store.item(world.item)?.version == 3)
    }

    @Test(arguments: [true, false])
    func `firings of a killed deletion are not delivered, and are removed before the next update`(
        isDue: Bool
    ) async throws {
        let store = try await stores.open()
        do {
            let world = try await EngineWorld(store)
            try await paced(on: world)
            stores.onCommit(of: store) {
                stores.refuseChanges(of: store, with: StoreFault(.full, "the disk is full"))
            }
            #expect(try await world.domain.itemEngine.delete(world.item))
            stores.onCommit(of: store, nil)
            stores.refuseChanges(of: store, with: nil)
        }
        let world = try await EngineWorld(store)
        #expect(try await store.item(world.item) == nil)
        #expect(try await stores.count(.throttledFirings, in: store) == 1)
        if isDue {
            try await stores.makeThrottledFiringsDue(in: store)
            _ = try await world.domain.firings.notifyThrottled()
            #expect(try await world.titles() == ["1.0"])
        }
        try await stores.forgetDeliveries(in: store)
        try await world.publish(3)
        #expect(try await stores.count(.throttledFirings, in: store) == 0)
        #expect(try await store.item(world.item)?.version == 1)
        #expect(try await stores.watchedVersions(where: nil, in: store) == [0])
        // It replaces the waiting one.
        #expect(try await world.titles() == ["3.0"])
    }

    /// Creates a subscription that delivered one firing and has another one throttled.
    private func paced(on world: EngineWorld) async throws {
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${price}"))]))
        _ = try await world.domain.subscriptions.put(
            .init(
                items: [world.item.name], fields: ["price"], trigger: "price > 0.0", format: format,
                policy: .every(coolDownSeconds: 0), pace: FiringPace(maxFrequency: 0.01)), of: world.device, from: nil)
        for price in [1.0, 2] { try await world.publish(price) }
        try await world.settle()
        #expect(try await stores.count(.throttledFirings, in: world.store) == 1)
    }

    @Test func `the subscriptions on a deleted item are reset part by part`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0")
        // More than one part has.
        try await stores.copySubscription(times: 4100, in: world.store)
        #expect(try await stores.watchedVersions(where: nil, in: world.store).count { $0 == 1 } == 4101)
        #expect(try await world.domain.itemEngine.delete(world.item))
        #expect(try await stores.watchedVersions(where: false, in: world.store).count { $0 == 0 } == 4101)
    }

    @Test func `the deletion of an item that does not exist reads no subscription`() async throws {
        let store = try await stores.open()
        _ = try await EngineWorld(store).subscribe("price > 10.0")
        let world = try await EngineWorld(store)
        let refusal = await #expect(throws: Refusal.self) {
            try await world.domain.items.delete(world.item.name, of: world.device.app)
        }
        #expect(refusal?.code == .itemUnknown)
        #expect(await world.domain.itemEngine.population.items == 0)
    }

    @Test func `deletions that wait are bounded, and those of an item that is gone by then are answered`() async throws {
        let world = try await EngineWorld(stores.open())
        let engine = world.domain.itemEngine
        try await world.publish(1)
        // After the next update the item is removed, and the app has no capacity for another.
        try await stores.loseItemsAfterUpdate(counting: ItemLimits.itemsPerApp, in: world.store)
        let gate = CommitGate(world.store)
        async let first: Void = world.publish(2)
        try await gate.reached()
        let most = ItemLimits.waitingUpdates
        try await withThrowingTaskGroup(of: ErrorCode?.self) { group in
            for _ in 0..<most + 1 {
                group.addTask {
                    try await Self.refusal {
                        let isDeleted = try await engine.delete(world.item)
                        #expect(!isDeleted)
                    }
                }
            }
            // The queue is full when one is refused.
            #expect(try await group.next() == .itemBusy)
            gate.open()
            for try await refusal in group { #expect(refusal == nil) }
        }
        try await first
        #expect(await engine.isIdle)
    }

    private static func refusal(_ work: () async throws -> Void) async throws -> ErrorCode? {
        do {
            try await work()
            return nil
        } catch let refusal as Refusal {
            return refusal.code
        }
    }

    @Test func `updates that follow a deletion return their space when their item cannot be loaded`() async throws {
        var limits = ItemEngine.Limits()
        limits.waitingBytesOfApp = 5000
        let world = try await EngineWorld(stores.open(), limits: limits)
        let engine = world.domain.itemEngine
        try await world.publish(1)
        // The item after the deleted one cannot be read.
        try await stores.replaceRemovedItems(in: world.store)
        let long = ItemUpdate(["text": ItemValue(.string(String(repeating: "x", count: 4000)))])
        let gate = CommitGate(world.store)
        async let isDeleted = engine.delete(world.item)
        try await gate.reached()
        try await withThrowingTaskGroup(of: (any Error)?.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    do {
                        _ = try await engine.publish(long, to: world.item, mode: .merge)
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            // One waits when the other is refused, because neither fits.
            let first = try #require(try await group.next())
            #expect((first as? Refusal)?.code == .itemBusy)
            gate.open()
            let second = try #require(try await group.next())
            #expect(second is StoreFault)
        }
        #expect(try await isDeleted)
        try await stores.stopReplacingRemovedItems(in: world.store)
        #expect(try await engine.publish(long, to: world.item, mode: .merge).version == 1)
    }

    @Test func `no update is lost that is accepted while its item is deleted`() async throws {
        let world = try await EngineWorld(stores.open())
        _ = try await world.subscribe("price > 0.0", .every(coolDownSeconds: 0))
        let engine = world.domain.itemEngine
        var (round, between) = (0, 0)
        var last: Int64 = 0
        while between < 5 {
            round += 1
            try #require(round <= 500, "\(between) deletions came between two updates")
            let first = 1000 * round
            async let published = versions(ofUpdates: first, on: world)
            async let isDeleted = engine.delete(world.item)
            let (versions, wasDeleted) = try await (published, isDeleted)
            #expect(versions.count == 50)
            var restarts = 0
            for version in versions {
                #expect(version == last + 1 || version == 1)
                if version == 1, last > 0 { restarts += 1 }
                last = version
            }
            #expect(restarts <= (wasDeleted ? 1 : 0))
            try await world.settle()
            let item = try await world.store.item(world.item)
            // The deletion happens before all of them, between two, or after the last.
            if let item {
                #expect(item.state.fields["price"]?.text == "\(first + 50)")
                #expect(item.version == last)
                if let place = versions.lastIndex(of: 1), place > 0 { between += 1 }
            } else {
                #expect(wasDeleted)
                last = 0
            }
            let inMemory = try await engine.item(of: world.item)
            #expect(inMemory?.version == item?.version)
        }
        #expect(await engine.isIdle)
    }

    /// Publishes 50 updates in five parts and returns the versions of their receipts.
    private func versions(ofUpdates start: Int, on world: EngineWorld) async throws -> [Int64] {
        var versions: [Int64] = []
        for part in 0..<5 {
            let updates = (1...10).map { number in
                (
                    item: world.item.name, fields: [WrittenField("price", .number("\(start + 10 * part + number)"))],
                    place: ItemUpdate.Place?.none
                )
            }
            for result in await world.domain.items.publish(updates, of: world.device.app) {
                versions.append(try result.get().version)
            }
        }
        return versions
    }

    @Test func `the version begins anew for the next process as well`() async throws {
        let store = try await stores.open()
        do {
            let world = try await EngineWorld(store)
            for price in [1.0, 2, 11] { try await world.publish(price) }
            _ = try await world.subscribe("price > 10.0", .everyCrossing)
            try await world.domain.items.delete(world.item.name, of: world.device.app)
        }
        let world = try await EngineWorld(store)
        try await world.domain.itemEngine.checkNeverFired()
        try await world.publish(12)
        #expect(try await world.titles() == ["12.0"])
        #expect(try await store.item(world.item)?.version == 1)
        let reopened = try await EngineWorld(store)
        try await reopened.domain.itemEngine.checkNeverFired()
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
        let stocks = ["stock.a", "stock.b", "stock.c"].map { JSONValue.string($0) }
        #expect(names(try await list("?prefix=stock.&after=events")) == stocks)
        #expect(names(try await list("?prefix=stock.b&after=stock.b")).isEmpty)
        #expect(names(try await list("?prefix=stock.&after=tock")).isEmpty)
        #expect(names(try await list("?prefix=zzz")).isEmpty)
        // A subscription that ended, and is not removed yet.
        try await stores.endSubscription(key: "x", in: world.routes.store)
        guard case .array(let counted)? = try await list("?prefix=stock.a").json?["items"] else {
            return #expect(Bool(false))
        }
        #expect(counted.first?["subscriptions"] == .integer(1))
        #expect(try await list("", key: world.routes.admin).status == 400)
        #expect(names(try await list("?app=com.example.app", key: world.routes.admin)).count == 5)
        #expect(try await list("", key: world.device).status == 401)
        for query in ["?limit=0", "?limit=1001", "?before=a", "?limit=1&limit=2"] {
            let refused = try await list(query)
            #expect(refused.status == 400 && refused["code"] == "parameter_invalid", "\(query)")
        }
    }

    // MARK: Idle items

    @Test func `an item without updates and subscriptions is deleted according to its rule`() async throws {
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

    @Test(arguments: [(60, 30), (6000, 600), (31_536_000, 3600)])
    func `idle items are searched at times that suit their rules`(idleSeconds: Int64, interval: Int64) async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"*","open":true,"idleSeconds":\#(idleSeconds)}]}"#)
        let domain = world.routes.domain
        try await world.publish("first", #"{"price":1}"#)
        world.advance(seconds: idleSeconds)
        try await domain.items.deleteIdle(at: domain.time.now(), onlyDue: true)
        #expect(try await stores.count(.items, in: world.routes.store) == 0)
        try await world.publish("second", #"{"price":1}"#)
        try await stores.ageItems(in: world.routes.store)
        world.advance(seconds: interval - 1)
        try await domain.items.deleteIdle(at: domain.time.now(), onlyDue: true)
        #expect(try await stores.count(.items, in: world.routes.store) == 1)
        world.advance(seconds: 1)
        try await domain.items.deleteIdle(at: domain.time.now(), onlyDue: true)
        #expect(try await stores.count(.items, in: world.routes.store) == 0)
    }

    @Test func `an item that has an update or a subscription by now is not idle`() async throws {
        let world = try await EngineWorld(stores.open())
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
            stores.open(), ticks: TickSource { ticks.now.withLock { $0 } })
        let rules = try #require(JSONValue(parsing: Array(#"{"items":[{"pattern":"*","idleSeconds":60}]}"#.utf8)))
        try await world.domain.items.setRules(try ItemRules(rules), of: world.device.app)
        try await world.publish(1)
        try await stores.ageItems(in: world.store)
        ticks.now.withLock { $0 = 7200 * 1_000_000_000 }
        let service = Sweepers(of: world.domain, store: world.store)
        let sweeper = Task { try await service.run() }
        try await eventually { try await world.store.item(world.item) == nil }
        sweeper.cancel()
        try? await sweeper.value
    }

    // MARK: Closed items

    @Test func `rules that close an item end the subscriptions on it, and return their number`() async throws {
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
        #expect(try await put().json?["ends"] == .integer(0))
        try await world.routes.domain.subscriptions.removeEnded()
        #expect(try await stores.count(.subscriptions, in: world.routes.store) == 1)
        let refused = try await world.subscribe(SubscriptionWorld.body(key: "a"), expecting: 403)
        #expect(refused["code"] == "item_closed")
    }

    @Test func `a subscription is checked by the stored rules, with any caller that set them`() async throws {
        let world = try await EngineWorld(stores.open())
        _ = try await world.domain.items.rules(of: world.device.app)
        let (key, now) = (AppDocument.Key(.itemRules, of: world.device.app), world.domain.time.now())
        let closed = Array(#"{"items":[]}"#.utf8)
        _ = try await world.store.putDocument(closed, as: key, at: now)
        let refusal = await #expect(throws: Refusal.self) { _ = try await world.subscribe("price > 10.0") }
        #expect(refusal?.code == .itemClosed)
        #expect(try await stores.count(.subscriptions, in: world.store) == 0)
        let open = Array(#"{"items":[{"pattern":"*","open":true}]}"#.utf8)
        _ = try await world.store.putDocument(open, as: key, at: now)
        let subscription = try await world.subscribe("price > 10.0")
        _ = try await world.store.putDocument(closed, as: key, at: now)
        let refused = await #expect(throws: Refusal.self) {
            _ = try await world.domain.subscriptions.change(subscription.id, of: world.device, from: nil) {
                $0.trigger = "price > 20.0"
            }
        }
        #expect(refused?.code == .itemClosed)
    }

    @Test func `subscriptions on closed items that a killed server left are ended by the next`() async throws {
        let store = try await stores.open()
        do {
            let world = try await EngineWorld(store)
            for number in 0..<3 { _ = try await world.subscribe("price > \(number).0", key: "\(number)") }
            // The state after a kill of a process that had written the rules.
            try await world.domain.items.setRules(ItemRules(), of: world.device.app)
        }
        let world = try await EngineWorld(store)
        #expect(try await store.appsWithUnappliedRules() == [world.device.app])
        let service = Sweepers(of: world.domain, store: world.store)
        let sweeper = Task { try await service.run() }
        try await eventually { try await stores.count(.subscriptions, in: store) == 0 }
        try await eventually { try await store.appsWithUnappliedRules().isEmpty }
        sweeper.cancel()
        try? await sweeper.value
    }

    @Test func `rules end no subscription after other rules were set`() async throws {
        let world = try await EngineWorld(stores.open())
        for number in 0..<501 { _ = try await world.subscribe("price > \(number).0", key: "\(number)") }
        // After the first part of the subscriptions other rules are set.
        try await stores.changeRules(afterEnding: 500, in: world.store)
        #expect(try await world.domain.subscriptions.setRules(ItemRules(), of: world.device.app) == 500)
        #expect(try await stores.subscriptionStatuses(in: world.store).count { $0 < 2 } == 1)
        #expect(try await world.store.appsWithUnappliedRules() == [world.device.app])
    }

    @Test func `many subscriptions are counted and ended part by part`() async throws {
        let world = try await EngineWorld(stores.open())
        let most = 501
        for number in 0..<most { _ = try await world.subscribe("price > \(number).0", key: "\(number)") }
        #expect(try await world.domain.subscriptions.countClosed(by: ItemRules(), of: world.device.app) == most)
        #expect(try await world.domain.subscriptions.setRules(ItemRules(), of: world.device.app) == most)
        #expect(try await world.store.appsWithUnappliedRules().isEmpty)
        #expect(
            try await stores.count(.subscriptions, in: world.store) == most,
            "they are removed after the request was answered")
        try await world.publish(1000)
        #expect(try await world.titles().isEmpty)
        try await world.domain.subscriptions.removeEnded()
        #expect(try await stores.count(.subscriptions, in: world.store) == 0)
        #expect(await world.domain.itemEngine.population.watches == 0)
    }
}
