import CarillonBasics
import CarillonCore
import CarillonWire
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Subscriptions of a device of one home on items of the other one.
@Suite(.timeLimit(.minutes(5)))
struct SubscriptionsOfTwoHomesTests {
    @Test func `the home of an item evaluates the subscriptions on it, and fires with the current values`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 1)
        try await world.publish(11, to: item)
        try await world.subscribe(0, [item])
        #expect(try await world.titles(0) == ["11.0"])
        try await world.subscribe(0, [item], "price > 12.0", key: "second")
        #expect(await world.watches(1) == 1)
        #expect(await world.watches(0) == 0)
        try await world.publish(13, to: item)
        #expect(Set(try await world.titles(0)) == ["11.0", "13.0"])
    }

    @Test func `a subscription watches items of both homes`() async throws {
        let world = try await ItemsOfTwoHomes()
        let items = [try world.homes.item(at: 0), try world.homes.item(at: 1)]
        try await world.subscribe(0, items, "price > 10.0", .everyCrossing)
        for place in 0...1 { #expect(await world.watches(place) == 1) }
        try await world.publish(11, to: items[0])
        #expect(try await world.titles(0) == ["11.0"])
        try await world.homes.acknowledgeAll(by: world.devices[0])
        try await world.publish(12, to: items[1])
        #expect(try await world.titles(0) == ["12.0"])
    }

    @Test func `a subscription that fires once does so on one of its items`() async throws {
        let world = try await ItemsOfTwoHomes()
        let items = [try world.homes.item(at: 0), try world.homes.item(at: 1)]
        try await world.subscribe(0, items)
        try await world.publish(11, to: items[1])
        for price in [12, 13] as [Double] { try await world.publish(price, to: items[0]) }
        #expect(try await world.titles(0) == ["11.0"])
        for place in 0...1 { #expect(await world.watches(place) == 0) }
    }

    @Test(arguments: [TestLink.Loss.answer, .question])
    func `a subscription of which the home of its item was not informed is handed over`(loss: TestLink.Loss) async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 1)
        try await world.publish(11, to: item)
        world.homes.links[1].lose(loss, of: FollowedSubscriptions.self)
        try await world.subscribe(0, [item], key: "k")
        #expect(try await world.homes.handOverCount() == 1)
        #expect(try await world.titles(0) == (loss == .answer ? ["11.0"] : []))
        try await world.homes.domains[0].itemEngine.settle()
        #expect(try await world.homes.handOverCount() == 1)
        try await world.homes.domains[1].itemEngine.settle()
        #expect(try await world.homes.handOverCount() == 0)
        #expect(try await world.titles(0) == ["11.0"])
        try await world.subscribe(0, [item], key: "k")
        #expect(try await world.homes.handOverCount() == 0)
        #expect(try await world.titles(0) == ["11.0"])
    }

    @Test func `a subscription is made also if its item moves behind the commit`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 0)
        let domain = world.homes.domains[0]
        let (gate, shard) = (try #require(domain.runtime.gate), Shard(of: item.app, item: item.name.text))
        #expect(await gate.close(shard, atMost: .seconds(10)))
        try await world.subscribe(0, [item], nil)
        #expect(await world.watches(0) == 0)
        gate.reopen(shard)
        try await domain.itemEngine.settle()
        #expect(await world.watches(0) == 1)
        #expect(try await world.homes.store.serials(of: world.devices[0].serial).count == 1)
    }

    /// An app that allows each subscription after some work.
    private struct SlowApproval: SubscriptionApproval {
        let work: @Sendable () async throws -> Void

        func hasHook(_ app: AppSerial) async throws -> Bool { true }

        func ask(_ question: SubscriptionQuestion, of app: AppID, serial: AppSerial) async throws { try await work() }
    }

    @Test func `a subscription that was not handed over to the new home of its item has an unknown outcome`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 0)
        let (homes, shard) = (world.homes, Shard(of: item.app, item: item.name.text))
        let domain = homes.domains[0]
        let approval = SlowApproval {
            let gate = try #require(domain.runtime.gate)
            #expect(await gate.close(shard, atMost: .seconds(10)))
            homes.domains[1].runtime.gate?.take(shard)
            domain.homes.move(ShardSet([shard]), to: 1)
            gate.remove(shard)
            homes.links[1].cut()
        }
        let registrar = SubscriptionRegistrar(
            store: domain.runtime.store, engine: domain.itemEngine, items: domain.items, home: domain.runtime,
            others: domain.others, rateLimits: domain.shared.rateLimits, approvalHooks: approval,
            payloadSize: { PushRendering.payloadSize(of: $0) }, time: domain.time, random: .system)
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${price}"))]))
        let definition = Subscription.Definition(items: [item.name], fields: ["price"], trigger: nil, format: format)
        let fault = await #expect(throws: StoreFault.self) {
            try await registrar.put(definition, of: world.devices[0], from: nil)
        }
        #expect(fault?.kind == .outcomeUnknown)
        #expect(try await homes.store.serials(of: world.devices[0].serial).count == 1)
    }

    @Test func `a changed subscription is armed again by the home of its item`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 1)
        try await world.publish(11, to: item)
        let subscription = try await world.subscribe(0, [item])
        #expect(try await world.titles(0) == ["11.0"])
        try await world.homes.acknowledgeAll(by: world.devices[0])
        _ = try await world.homes.domains[0].subscriptions.change(subscription.id, of: world.devices[0], from: nil) {
            $0.trigger = "price > 9.0"
        }
        #expect(try await world.titles(0) == ["11.0"])
        try await world.homes.domains[1].itemEngine.settle()
        #expect(try await world.homes.handOverCount() == 0)
    }

    @Test func `an item of another home that is full refuses a condition`() async throws {
        var limits = ItemEngine.Limits()
        limits.comparedPerItem = 1
        let world = try await ItemsOfTwoHomes(items: limits)
        let items = [try world.homes.item(at: 0), try world.homes.item(at: 1)]
        try await world.subscribe(0, [items[1]], "price + a < 0.0")
        let refusal = await #expect(throws: Refusal.self) {
            try await world.subscribe(0, items, "price + b < 0.0", key: "k")
        }
        #expect(refusal?.code == .triggerForbidden)
        try await world.subscribe(0, [items[0]], "price + b < 0.0", key: "k")
    }

    @Test func `a subscription is not made if the home of its item does not answer`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 1)
        world.homes.links[1].cut()
        await #expect(throws: StoreFault.self) { try await world.subscribe(0, [item]) }
        #expect(try await world.homes.store.serials(of: world.devices[0].serial).isEmpty)
    }

    @Test func `a subscription on an item of another home is explained`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 1)
        try await world.publish(1, to: item)
        let subscription = try await world.subscribe(0, [item])
        world.homes.links[1].cut()
        let explanations = try await world.homes.domains[0].subscriptions.explain(subscription)
        #expect(explanations.map(\.verdict) == [.doesNotHold])
        #expect(explanations.map(\.version) == [1])
    }

    @Test func `a subscription that is removed is forgotten by the home of its item`() async throws {
        let world = try await ItemsOfTwoHomes()
        let (item, store) = (try world.homes.item(at: 1), world.homes.store)
        try await world.subscribe(0, [item])
        let engine = world.homes.domains[1].itemEngine
        #expect(try await world.homes.domains[0].subscriptions.remove(.init(), of: world.devices[0]) == 1)
        try await eventually { await engine.population.watches == 0 }
        try await eventually { try await stores.count(.handOvers, in: store) == 0 }
        try await world.publish(11, to: item)
        #expect(try await world.titles(0).isEmpty)
    }

    @Test func `a subscription is removed before the answer also if the shard of its device is closing`() async throws {
        let world = try await ItemsOfTwoHomes()
        let (item, device, domain) = (try world.homes.item(at: 0), world.devices[0], world.homes.domains[0])
        try await world.publish(11, to: item)
        try await world.subscribe(0, [item])
        #expect(try await world.titles(0) == ["11.0"])
        let count = try await domain.runtime.whileClosing(Shard(of: device.serial)) {
            try await domain.subscriptions.remove(.init(), of: device)
        }
        #expect(count == 1)
        #expect(try await world.titles(0).isEmpty)
    }

    @Test func `a subscription is not watched while its device is suspended`() async throws {
        let world = try await ItemsOfTwoHomes()
        let (item, devices) = (try world.homes.item(at: 1), world.homes.domains[0].devices)
        try await world.publish(1, to: item)
        try await world.subscribe(0, [item], "price > 10.0", .everyCrossing)
        _ = try await devices.suspend(world.devices[0])
        #expect(await world.watches(1) == 0)
        try await world.publish(11, to: item)
        _ = try await devices.resume(world.devices[0])
        #expect(await world.watches(1) == 1)
        for price in [1, 12] as [Double] { try await world.publish(price, to: item) }
        #expect(try await world.titles(0) == ["12.0"])
        try await world.homes.domains[1].itemEngine.settle()
        #expect(try await world.homes.handOverCount() == 0)
    }

    @Test func `a device is resumed also if the home of an item does not answer`() async throws {
        let world = try await ItemsOfTwoHomes()
        let (item, devices) = (try world.homes.item(at: 1), world.homes.domains[0].devices)
        try await world.subscribe(0, [item], "price > 10.0", .everyCrossing)
        _ = try await devices.suspend(world.devices[0])
        #expect(await world.watches(1) == 0)
        world.homes.links[1].cut()
        let registration = try await devices.resume(world.devices[0])
        #expect(registration.status == .registered)
        #expect(await world.watches(1) == 0)
        try await world.homes.domains[1].itemEngine.settle()
        #expect(await world.watches(1) == 1)
    }

    @Test func `subscriptions on items that rules close end at both homes, each at the home of its device`() async throws {
        let world = try await ItemsOfTwoHomes()
        let (homes, item) = (world.homes, try world.homes.item(at: 1))
        for place in 0...1 { try await world.subscribe(place, [item]) }
        try await homes.domains[1].subscriptions.applyRules()
        #expect(try await homes.domains[1].subscriptions.setRules(ItemRules(), of: item.app) == 2)
        for place in [1, 0] {
            #expect(try await homes.store.serials(of: world.devices[place].serial).count == 1)
            try await homes.domains[place].subscriptions.removeEnded()
            #expect(try await homes.store.serials(of: world.devices[place].serial).isEmpty)
        }
        try await homes.domains[1].itemEngine.settle()
        #expect(await world.watches(1) == 0)
    }

    @Test func `each home deletes its idle items`() async throws {
        let world = try await ItemsOfTwoHomes()
        let (homes, store) = (world.homes, world.homes.store)
        try await world.setRules(idleSeconds: 60)
        for place in 0...1 { try await world.publish(1, to: try homes.item(at: place)) }
        homes.advance(seconds: 60)
        for (place, left) in [(1, 1), (1, 1), (0, 0)] {
            try await homes.domains[place].items.deleteIdle(at: homes.now)
            #expect(try await stores.count(.items, in: store) == left)
        }
    }

    @Test func `an item is not written by another home`() async throws {
        let world = try await ItemsOfTwoHomes()
        let item = try world.homes.item(at: 1)
        await #expect(throws: StoreFault.self) {
            try await world.homes.domains[0].items.publish(
                [WrittenField("price", .number("1"))], to: item.name, of: item.app)
        }
        #expect(try await stores.count(.items, in: world.homes.store) == 0)
    }
}
