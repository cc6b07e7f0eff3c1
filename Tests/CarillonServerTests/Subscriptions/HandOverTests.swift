import CarillonCore
import TestStores
import Testing

@testable import CarillonServer

/// The engine of items applies hand-overs, and a process that was killed leaves them to the next one.
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
        let now = world.domain.time.now()
        let result = try await world.store.changeRegistration(of: world.device.serial, at: now) { current in
            RegistrationRules.resume(current, at: now).map { .becomes($0) } ?? .nothing
        }
        _ = try #require(result).get()
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
        await #expect(throws: (any Error).self) { try await engine.settle() }
        try await stores.makeReadable(.watchedItems, in: world.store)
        #expect(await engine.population.watches == 2)
        #expect(try await handOvers(world.store) == 1)
        try await engine.settle()
        #expect(await engine.population.watches == 0)
        #expect(try await handOvers(world.store) == 0)
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
