import CarillonCore
import CarillonWire
import Logging
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The engine of items applies hand-overs, and after a kill the next process applies them.
@Suite(.timeLimit(.minutes(5)))
struct HandOverTests {
    /// Ends and removes the subscriptions of the device in the store. The engine is not called.
    private func removeSubscriptions(_ world: EngineWorld) async throws {
        _ = try await world.store.endSubscriptions(of: world.device.serial, SubscriptionFilter())
        let ended = try await world.store.endedSubscriptions(of: nil, in: .all, limit: 100)
        try await world.store.removeSubscriptions(ended, at: world.domain.time.now())
    }

    private func suspend(_ world: EngineWorld) async throws {
        let now = world.domain.time.now()
        let result = try await world.store.changeRegistration(of: world.device.serial, at: now) { current in
            RegistrationRules.suspend(current, because: .byOperator, at: now).map { .becomes($0) } ?? .nothing
        }
        _ = try #require(result).get()
    }

    private func resume(_ world: EngineWorld) async throws {
        let now = world.domain.time.now()
        let result = try await world.store.changeRegistration(of: world.device.serial, at: now) { current in
            RegistrationRules.resume(current, at: now).map { .becomes($0) } ?? .nothing
        }
        _ = try #require(result).get()
    }

    /// Ends and removes a subscription in the store. The engine is not called.
    private func remove(_ subscription: Subscription, _ world: EngineWorld) async throws {
        let ended = EndedSubscription(serial: subscription.serial, device: subscription.device)
        _ = try await world.store.endSubscriptions([ended.serial], of: ended.device)
        try await world.store.removeSubscriptions([ended], at: world.domain.time.now())
    }

    private func anotherDevice(_ world: EngineWorld) async throws -> Device {
        let app = try #require(AppID("com.example.app"))
        return try await world.domain.devices.register(app: app).device
    }

    private func makeWorld(_ store: any Store, subscriptions: Int) async throws -> EngineWorld {
        let world = try await EngineWorld(store)
        try await world.publish(1)
        for number in 0..<subscriptions { _ = try await world.subscribe("price > 10.0", key: "\(number)") }
        #expect(await world.domain.itemEngine.population.watches == subscriptions)
        return world
    }

    private func handOvers(_ store: any Store) async throws -> Int { try await stores.count(.handOvers, in: store) }

    @Test func `subscriptions of a deleted device are forgotten`() async throws {
        let world = try await makeWorld(stores.open(), subscriptions: 3)
        _ = try await world.store.deleteDevice(world.device.serial, at: world.domain.time.now())
        #expect(try await handOvers(world.store) == 3)
        try await world.domain.itemEngine.settle()
        #expect(await world.domain.itemEngine.population.watches == 0)
        #expect(try await handOvers(world.store) == 0)
        #expect(try await stores.count(.conditionShapes, in: world.store) == 0)
    }

    @Test func `subscriptions of a suspended device are forgotten, and armed again when it is resumed`() async throws {
        let world = try await makeWorld(stores.open(), subscriptions: 3)
        try await suspend(world)
        #expect(try await handOvers(world.store) == 1)
        try await world.domain.itemEngine.settle()
        #expect(await world.domain.itemEngine.population.watches == 0)
        #expect(try await handOvers(world.store) == 0)
        try await resume(world)
        try await world.domain.itemEngine.settle()
        #expect(await world.domain.itemEngine.population.watches == 3)
        #expect(try await handOvers(world.store) == 0)
    }

    @Test func `hand-overs that could not be removed are applied again, also by another process`() async throws {
        let store = try await stores.open()
        do {
            let world = try await makeWorld(store, subscriptions: 3)
            let engine = world.domain.itemEngine
            try await removeSubscriptions(world)
            stores.refuseChanges(of: store, with: StoreFault(.full, "the disk is full"))
            await #expect(throws: StoreFault.self) { try await engine.settle() }
            #expect(await engine.population.watches == 0, "the engine has forgotten them already")
            await #expect(throws: StoreFault.self) { try await engine.settle() }
            stores.refuseChanges(of: store, with: nil)
            #expect(try await handOvers(store) == 3)
        }
        let world = try await makeWorld(store, subscriptions: 2)
        #expect(try await handOvers(store) == 3)
        try await world.domain.itemEngine.settle()
        #expect(try await handOvers(store) == 0)
        #expect(await world.domain.itemEngine.population.watches == 2)
        #expect(try await stores.count(.conditionShapes, in: store) == 1, "it is used by other subscriptions")
        try await world.publish(11)
        #expect(try await world.titles().count == 2)
    }

    @Test func `a device whose subscriptions cannot be read is followed later`() async throws {
        let world = try await makeWorld(stores.open(), subscriptions: 2)
        let engine = world.domain.itemEngine
        try await suspend(world)
        try await stores.makeUnreadable(.watchedItems, in: world.store)
        for _ in 0..<2 { try await engine.settle() }
        try await stores.makeReadable(.watchedItems, in: world.store)
        #expect(await engine.population.watches == 2)
        #expect(try await handOvers(world.store) == 1)
        try await engine.settle()
        #expect(await engine.population.watches == 0)
        #expect(try await handOvers(world.store) == 0)
    }

    @Test func `hand-overs that cannot be applied are logged when that begins`() async throws {
        let (world, catcher) = (try await EngineWorld(stores.open()), LogCatcher())
        let engine = ItemEngine(
            store: world.store, home: world.domain.runtime, documents: AppDocuments(store: world.store),
            firings: world.domain.firings,
            conditions: world.domain.itemEngine.conditions, time: world.domain.time, ticks: .system, logger: catcher.logger)
        _ = try await world.subscribe("price > 10.0")
        try await suspend(world)
        try await stores.makeUnreadable(.watchedItems, in: world.store)
        for _ in 0..<2 { try await engine.settle() }
        try await stores.makeReadable(.watchedItems, in: world.store)
        #expect(catcher.warnings.count { $0.contains("cannot apply hand-overs") } == 1)
        try await engine.settle()
        #expect(try await handOvers(world.store) == 0)
    }

    @Test func `a subscription on an item whose name cannot be read is removed with its shape`() async throws {
        let world = try await makeWorld(stores.open(), subscriptions: 1)
        let damaged = try #require(try await world.store.serials(of: world.device.serial).first)
        try await stores.damageWatchedItems(of: damaged, in: world.store)
        try await removeSubscriptions(world)
        #expect(try await handOvers(world.store) == 1)
        try await world.domain.itemEngine.settle()
        #expect(try await handOvers(world.store) == 0)
        #expect(try await stores.count(.conditionShapes, in: world.store) == 0)
    }

    @Test func `hand-overs that cannot be applied stay, and those behind them are applied`() async throws {
        let store = try await stores.open()
        let world = try await makeWorld(store, subscriptions: 1)
        let other = try await anotherDevice(world)
        var others: [Subscription] = []
        for number in 0..<3 {
            others.append(try await world.subscribe("price > 10.0", key: "\(number)", of: other))
        }
        let damaged = try #require(try await store.serials(of: world.device.serial).first)
        try await suspend(world)
        try await resume(world)
        try await stores.damageWatchedItems(of: damaged, in: store)
        try await remove(others[0], world)
        #expect(try await handOvers(store) == 3)
        func expectKept() async throws {
            let kept = try await store.handOvers(in: .all, after: 0, limit: 9).compactMap { ItemHandOver($0) }
            let expected = ItemHandOver.subscriptionsChanged(of: world.device.serial)
            #expect(kept == [expected, expected])
        }
        let engine = world.domain.itemEngine
        try await engine.settle()
        try await expectKept()
        #expect(await engine.population.watches == 3)
        let count = try await world.domain.subscriptions.remove(these: [others[1].serial], of: other)
        #expect(count == 1)
        try await expectKept()
        #expect(await engine.population.watches == 2)

        // Another process has nothing in memory.
        let next = try await EngineWorld(store)
        try await remove(others[2], next)
        try await next.domain.itemEngine.settle()
        try await expectKept()
        try await next.domain.itemEngine.settle()
        try await expectKept()
    }

    @Test func `a changed subscription that cannot be read does not delay others`() async throws {
        let world = try await makeWorld(stores.open(), subscriptions: 3)
        let (store, engine) = (world.store, world.domain.itemEngine)
        let damaged = try #require(try await store.serials(of: world.device.serial).first)
        try await suspend(world)
        try await stores.damageWatchedItems(of: damaged, in: store)
        await #expect(throws: (any Error).self) { try await engine.follow(world.device.serial) }
        #expect(await engine.population.watches == 3)
        try await engine.settle()
        #expect(await engine.population.watches == 1)
        #expect(try await handOvers(store) == 1)
    }

    @Test func `an engine of some shards has items and applies hand-overs of these shards alone`() async throws {
        let world = try await EngineWorld(stores.open())
        let store = world.store
        let another = ItemKey(app: world.item.app, name: try #require(ItemName("other")))
        let (shard, elsewhere) = (
            Shard(of: world.item.app, item: world.item.name.text), Shard(of: another.app, item: another.name.text)
        )
        try #require(shard != elsewhere)
        let runtime = world.domain.runtime
        let gate = ShardGate(ShardSet([shard]), scheduler: Scheduler { _, _ in })
        let home = HomeRuntime(inbox: runtime.inbox, sessions: runtime.sessions, store: store, gate: gate)
        let engine = ItemEngine(
            store: store, home: home, documents: AppDocuments(store: store), firings: world.domain.firings,
            conditions: world.domain.itemEngine.conditions, time: world.domain.time, ticks: .system,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        var subscriptions: [Subscription] = []
        for (place, key) in [world.item, another].enumerated() {
            let subscription = try await world.subscribe("price > 10.0", key: "\(place)", on: key)
            try await engine.follow([subscription.serial], looks: true)
            subscriptions.append(subscription)
        }
        #expect(await engine.population.watches == 1)
        await #expect(throws: StoreFault.self) {
            try await engine.publish(ItemUpdate([:]), to: another, mode: .merge)
        }
        for subscription in subscriptions { try await remove(subscription, world) }
        try await engine.settle()
        #expect(await engine.population.watches == 0)
        #expect(try await store.handOvers(in: .all, after: 0, limit: 9).map(\.shard) == [elsewhere])
    }

    @Test func `more hand-overs than are read at once are applied by calls at once`() async throws {
        let world = try await makeWorld(stores.open(), subscriptions: 1)
        try await stores.copySubscription(times: 2500, in: world.store)
        let ended = try await world.store.endSubscriptions(of: world.device.serial, SubscriptionFilter())
        #expect(ended == 2501)
        let all = try await world.store.endedSubscriptions(of: nil, in: .all, limit: 5000)
        try await world.store.removeSubscriptions(all, at: world.domain.time.now())
        #expect(try await handOvers(world.store) == 2501)
        let (engine, store) = (world.domain.itemEngine, world.store)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await engine.settle()
                    return try await stores.count(.handOvers, in: store)
                }
            }
            for try await left in group { #expect(left == 0, "a call returns when all are applied") }
        }
        #expect(await engine.population.watches == 0)
    }
}
