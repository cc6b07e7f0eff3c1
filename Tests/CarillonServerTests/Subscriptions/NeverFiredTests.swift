import CarillonCore
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Subscriptions whose condition is already true, and that a killed server did not evaluate any more.
@Suite(.timeLimit(.minutes(5)))
struct NeverFiredTests {
    /// A store after the kill of a process behind the commit of the last subscription.
    private func killed() async throws -> any Store {
        let store = try await stores.openKept()
        let world = try await EngineWorld(store)
        try await world.publish(20)
        _ = try await world.subscribe("price > 10.0", key: "fired")
        _ = try await world.subscribe("price > 30.0", key: "not yet")
        _ = try await world.titles()
        let snapshots = Snapshots(of: store)
        snapshots.begin()
        _ = try await world.subscribe("price > 15.0", key: "killed")
        snapshots.end()
        _ = try await world.titles()
        try await stores.close(store)
        return try await stores.openCopy(try #require(snapshots.taken.first).copy)
    }

    @Test func `a server checks refused crossings after its start, and nothing twice`() async throws {
        let world = try await EngineWorld(try await killed())
        #expect(try await world.titles() == ["20.0"])
        try await world.domain.itemEngine.checkNeverFired()
        #expect(try await world.titles() == ["20.0", "20.0"])
        try await world.domain.itemEngine.checkNeverFired()
        #expect(try await world.titles() == ["20.0", "20.0"])
        try await world.publish(31)
        #expect(try await world.titles() == ["20.0", "20.0", "31.0"])
    }

    @Test func `a running server does it by itself`() async throws {
        let world = try await EngineWorld(try await killed())
        let service = Sweepers(of: world.domain, store: world.store)
        let sweeper = Task { try await service.run() }
        try await eventually { try await world.titles() == ["20.0", "20.0"] }
        sweeper.cancel()
        try? await sweeper.value
    }

    @Test func `refused crossings are found in parts`() async throws {
        let store = try await killed()
        let world = try await EngineWorld(store)
        var (found, parts) = ([ItemKey](), 0)
        var place: WatchPlace? = .start
        while let start = place {
            let part = try await store.itemsNeverFired(in: .all, after: start, limit: 1)
            found += part.items
            parts += 1
            place = part.end
        }
        #expect(found == [world.item, world.item] && parts == 4)
        #expect(try await store.itemsNeverFired(in: .all, after: .start, limit: 100).items == [world.item])
    }
}
