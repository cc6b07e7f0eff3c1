import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Firings that could not be delivered: they are not lost, and not delivered twice.
struct PendingStatusTests {
    private static let crossing = SubscriptionWorld.body("price > 10.0", rest: #","policy":"everyCrossing""#)

    @Test(arguments: [true, false])
    func `a crossing while another device has the token is none`(isHeardOf: Bool) async throws {
        let world = try await SubscriptionWorld()
        try await world.publish("stock.ACME", #"{"price":1}"#)
        try await world.subscribe(Self.crossing)
        let other = try await world.routes.request(.post, "/v1/devices", key: world.clientKey)
        try await world.say(#"{"platform":"apple","pushToken":"aa01","environment":"test"}"#, by: other["credential"])
        // A crossing can occur before the engine is informed, or after.
        if isHeardOf {
            try await world.routes.domain.subscriptions.removeEnded()
            #expect(await world.routes.domain.itemEngine.population.watches == 0)
        }
        try await world.publish("stock.ACME", #"{"price":11}"#)
        try await world.settle()
        try await world.say(#"{"platform":"apple","pushToken":"aa02","environment":"test"}"#)
        try await world.routes.domain.subscriptions.removeEnded()
        try await world.publish("stock.ACME", #"{"price":12}"#)
        #expect(try await world.titles().isEmpty)
        try await world.publish("stock.ACME", #"{"price":1}"#)
        try await world.publish("stock.ACME", #"{"price":13}"#)
        #expect(try await world.titles() == ["stock.ACME: 13"])
    }

    @Test func `a condition that is true when its device is resumed has not crossed, also in another process`() async throws
    {
        let store = try await stores.open()
        do {
            let world = try await EngineWorld(store)
            try await world.publish(1)
            _ = try await world.subscribe("price > 10.0", .everyCrossing, key: "a")
            _ = try await world.subscribe("price > 0.0", .everyCrossing, key: "b")
            #expect(try await world.titles().isEmpty)
            _ = try await world.domain.devices.suspend(world.device)
        }
        let world = try await EngineWorld(store)
        try await world.publish(11)
        _ = try await world.domain.devices.resume(world.device)
        try await world.publish(12)
        #expect(try await world.titles().isEmpty)
        try await world.publish(0)
        try await world.publish(13)
        #expect(try await world.titles() == ["13.0", "13.0"])
    }

    @Test(arguments: ["once", "everyCrossing"])
    func `a firing that a full inbox refused fires with the next update`(policy: String) async throws {
        let store = try await stores.open(.init(inbox: InboxLimits(envelopes: 1)))
        let world = try await SubscriptionWorld(store: store)
        let full = SubscriptionWorld.body("price > 0.0", item: "stock.other", key: "full")
        try await world.subscribe(full)
        try await world.publish("stock.other", #"{"price":1}"#)
        try await world.publish("stock.ACME", #"{"price":1}"#)
        try await world.subscribe(SubscriptionWorld.body("price > 10.0", rest: #","policy":"\#(policy)""#))
        try await world.publish("stock.ACME", #"{"price":11}"#)
        #expect(try await world.titles() == ["stock.other: 1"])
        try await world.acknowledgeAll()
        try await world.publish("stock.ACME", #"{"price":12}"#)
        #expect(try await world.titles() == ["stock.ACME: 12"])
        try await world.acknowledgeAll()
        try await world.publish("stock.ACME", #"{"price":13}"#)
        #expect(try await world.titles().isEmpty)
    }

    @Test func `a crossing that had no room to wait fires with the next update`() async throws {
        let world = try await SubscriptionWorld()
        try await world.publish("stock.ACME", #"{"price":10.5}"#)
        try await world.subscribe(
            SubscriptionWorld.body("price > 10.0", rest: #","policy":"everyCrossing","maxFrequency":0.5"#))
        for price in [1, 11] { try await world.publish("stock.ACME", #"{"price":\#(price)}"#) }
        #expect(try await world.titles() == ["stock.ACME: 11"])
        try await world.acknowledgeAll()
        // The state that other subscriptions of the device cause.
        let store = world.routes.store
        #expect(try await stores.heldConditions(in: store) == [true], "it was true when the subscription was created")
        try await stores.addThrottledFirings(SubscriptionLimits.throttledFirings, in: store)
        for price in [1, 12] { try await world.publish("stock.ACME", #"{"price":\#(price)}"#) }
        try await world.settle()
        #expect(try await stores.count(.throttledFirings, in: store) == SubscriptionLimits.throttledFirings)
        #expect(try await stores.heldConditions(in: store) == [false])
        #expect(try await stores.lastFirings(in: store).allSatisfy { $0 < 0 }, "the crossing is found again after a start")
        try await stores.removeThrottledFirings(in: store)
        world.advance(seconds: 2)
        try await world.publish("stock.ACME", #"{"price":13}"#)
        #expect(try await world.titles() == ["stock.ACME: 13"])
        try await world.publish("stock.ACME", #"{"price":14}"#)
        #expect(try await world.titles() == ["stock.ACME: 13"], "it is still true")
    }

    @Test(arguments: [true, false])
    func `a change of a subscription whose rows could not be read is followed later`(looks: Bool) async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        let subscription = try await world.subscribe("price > 10.0")
        let engine = world.domain.itemEngine
        #expect(await engine.population.watches == 1)
        try await stores.trigger(subscriptionsIn: world.store)
        try await stores.makeUnreadable(.watchedItems, in: world.store)
        await #expect(throws: (any Error).self) { try await engine.follow([subscription.serial], looks: looks) }
        try await stores.makeReadable(.watchedItems, in: world.store)
        #expect(await engine.population.watches == 1)
        try await engine.settle()
        #expect(await engine.population.watches == 0)
    }

    @Test func `a cool-down of several items counts from a delivered firing, and not from a refused one`() async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(
            #"{"items":["stock.A","stock.B"],"fields":["price"],"format":{"title":"${item}: ${price}"},"trigger":"price > 10.0","policy":"every","coolDown":60}"#
        )
        try await world.publish("stock.A", #"{"price":11}"#)
        #expect(try await world.titles() == ["stock.A: 11"])
        try await world.acknowledgeAll()
        world.advance(seconds: 50)
        try await world.publish("stock.B", #"{"price":11}"#)
        #expect(try await world.titles().isEmpty)
        world.advance(seconds: 11)
        try await world.publish("stock.B", #"{"price":12}"#)
        #expect(try await world.titles() == ["stock.B: 12"])
    }

    @Test(arguments: [true, false])
    func `a condition that was true at its creation fires, also if the process was killed before`(comesAgain: Bool)
        async throws
    {
        let store = try await stores.open()
        do {
            let world = try await EngineWorld(store)
            try await world.publish(9)
            _ = try await world.subscribe("price > 8.0", key: "k")
            #expect(try await world.titles() == ["9.0"])
            // As it is behind the commit of its making.
            try await stores.forgetFirings(in: store)
        }
        let world = try await EngineWorld(store)
        if comesAgain { _ = try await world.subscribe("price > 8.0", key: "k") } else { try await world.publish(7) }
        #expect(try await world.titles() == ["9.0"])
        #expect(try await stores.subscriptionStatuses(in: store) == [1])
    }

    @Test func `a crossing that an earlier process found and did not deliver is delivered once`() async throws {
        let store = try await stores.open()
        let first = try await EngineWorld(store)
        try await first.publish(11)
        let subscription = try await first.subscribe("price > 20.0", .everyCrossing)
        // The state after the evaluation at its creation: since the stored update it is armed, and its firing is not delivered.
        var state = ItemState(.merge)
        state.apply(.init(["price": ItemValue(.double(21), digits: "21")], at: first.domain.time.now()))
        let target = Firing.Target(subscription: subscription.serial, revision: 1)
        _ = try await store.commitItem(
            ItemCommit(
                key: first.item, item: StoredItem(state: state, version: 1),
                firings: [Firing(item: first.item.name, app: first.item.app, state: state, targets: [target])]))
        let second = try await EngineWorld(store)
        // It is loaded before the pending firings are delivered.
        await #expect(throws: Refusal.self) { try await second.publish(22) }
        try await second.domain.itemEngine.notifyRest()
        try await second.publish(23)
        #expect(try await second.titles() == ["21"])
    }

    @Test func `a list by tag continues behind subscriptions with other tags`() async throws {
        let world = try await SubscriptionWorld()
        for number in 0..<30 {
            let rest = number < 25 ? "" : #","tags":["t"]"#
            try await world.subscribe(SubscriptionWorld.body("price > 10.0", key: "\(number)", rest: rest))
        }
        let page = try await world.routes.request(.get, "/v1/device/subscriptions?tag=t&limit=3", key: world.device)
        guard case .array(let first)? = page.json?["subscriptions"] else { return #expect(Bool(false)) }
        #expect(first.map { $0["key"] } == ["25", "26", "27"].map { .string($0) })
        let rest = try await world.routes.request(
            .get, "/v1/device/subscriptions?tag=t&limit=3&after=\(page["next"])", key: world.device)
        guard case .array(let second)? = rest.json?["subscriptions"] else { return #expect(Bool(false)) }
        #expect(second.map { $0["key"] } == ["28", "29"].map { .string($0) })
    }
}
