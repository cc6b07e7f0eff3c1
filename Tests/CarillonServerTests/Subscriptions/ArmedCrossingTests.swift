import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// A crossing whose condition is true when it is armed fires if the condition was false in between.
@Suite(.timeLimit(.minutes(5)))
struct ArmedCrossingTests {
    /// The event that arms a subscription whose condition is true.
    enum Arming: CaseIterable {
        case making, change, resumption
    }

    @Test(arguments: Arming.allCases, [true, false])
    func `a condition that is true when it is armed does not fire until it was false`(arming: Arming, isRestarted: Bool)
        async throws
    {
        let store = try await stores.open()
        var world = try await EngineWorld(store)
        try await world.publish(5)
        switch arming {
        case .making: _ = try await world.subscribe("price > 2.0", .everyCrossing)
        case .change:
            let subscription = try await world.subscribe("price > 7.0", .everyCrossing)
            _ = try await world.domain.subscriptions.change(subscription.id, of: world.device, from: nil) {
                $0.trigger = "price > 2.0"
            }
        case .resumption:
            try await world.publish(1)
            _ = try await world.subscribe("price > 2.0", .everyCrossing)
            _ = try await world.domain.devices.suspend(world.device)
            try await world.publish(5)
            _ = try await world.domain.devices.resume(world.device)
        }
        #expect(try await world.titles().isEmpty)
        if isRestarted { world = try await EngineWorld(store) }
        try await world.domain.itemEngine.checkNeverFired()
        try await world.publish(6)
        #expect(try await world.titles().isEmpty)
        // It is armed before the last update now.
        if isRestarted { world = try await EngineWorld(store) }
        try await world.domain.itemEngine.checkNeverFired()
        try await world.publish(7)
        #expect(try await world.titles().isEmpty)
        try await world.publish(1)
        try await world.publish(8)
        #expect(try await world.titles() == ["8.0"])
    }

    @Test func `an empty change of a fired subscription that is still true does not fire it again`() async throws {
        let world = try await EngineWorld(stores.open())
        try await world.publish(1)
        let subscription = try await world.subscribe("price > 2.0", .everyCrossing)
        try await world.publish(5)
        #expect(try await world.titles() == ["5.0"])
        _ = try await world.domain.subscriptions.change(subscription.id, of: world.device, from: nil) { _ in }
        try await world.publish(6)
        #expect(try await world.titles() == ["5.0"])
    }

    /// The state of a condition that is armed after the first update.
    enum Found: CaseIterable {
        case holds, doesNotHold, isUnknown

        fileprivate func conditions(_ item: ItemName) -> [FoundCondition] {
            switch self {
            case .holds: [.init(item: item, version: 1, holds: true)]
            case .doesNotHold: [.init(item: item, version: 1, holds: false)]
            // It was found before another update.
            case .isUnknown: [.init(item: item, version: 0, holds: false)]
            }
        }
    }

    @Test(arguments: Found.allCases)
    func `a crossing that a killed server did not evaluate fires after the start, and a true condition does not`(
        found: Found
    )
        async throws
    {
        let store = try await stores.open()
        do {
            let world = try await EngineWorld(store)
            try await world.publish(found == .holds ? 11 : 1)
            try await put("price > 10.0", on: world, found.conditions(world.item.name))
            // It is published between the creation and the arming.
            try await world.publish(12)
            #expect(try await world.titles().isEmpty)
        }
        let world = try await EngineWorld(store)
        let items = try await store.itemsNeverFired(in: .all, after: .start, limit: 10).items
        #expect(items == (found == .doesNotHold ? [world.item] : []))
        try await world.domain.itemEngine.checkNeverFired()
        let expected = found == .doesNotHold ? ["12.0"] : []
        #expect(try await world.titles() == expected)
        try await world.publish(13)
        #expect(try await world.titles() == expected)
        #expect(try await store.itemsNeverFired(in: .all, after: .start, limit: 10).items.isEmpty)
    }

    @Test(arguments: [true, false])
    func `a crossing that is armed when its item was deleted fires with the first update, after a kill too`(
        isResumed: Bool
    ) async throws {
        let store = try await stores.open()
        do {
            let world = try await EngineWorld(store)
            try await world.publish(1)
            if isResumed {
                try await put("price > 10.0", on: world, [.init(item: world.item.name, version: 1, holds: false)])
                _ = try await world.domain.devices.suspend(world.device)
                try await stores.loseItems(in: store)
                _ = try await world.domain.devices.resume(world.device)
            } else {
                // The item is deleted after its condition was found.
                try await stores.loseItems(in: store)
                try await put("price > 10.0", on: world, [.init(item: world.item.name, version: 1, holds: true)])
            }
            #expect(try await stores.watchedVersions(where: false, in: store) == [0])
            var state = ItemState(.merge)
            state.apply(
                .init(["price": ItemValue(.double(12), digits: "12.0")], at: world.domain.time.now()))
            // The state after a kill of a process before the subscription was armed.
            _ = try await store.commitItem(
                ItemCommit(key: world.item, item: StoredItem(state: state, version: 1), firings: []))
        }
        let world = try await EngineWorld(store)
        try await world.domain.itemEngine.checkNeverFired()
        #expect(try await world.titles() == ["12.0"])
    }

    @Test func `a condition that costs too much when it is armed is not known to be true`() async throws {
        let world = try await EngineWorld(stores.open())
        for text in ["ab", String(repeating: "a", count: 4000) + "b"] {
            _ = try await world.domain.items.publish(
                [WrittenField("price", .string(text))], to: world.item.name, of: world.device.app)
            _ = try await world.subscribe("price.matches('a.*b')", .everyCrossing, key: "\(text.count)")
        }
        #expect(try await stores.heldConditions(in: world.store) == [true, nil])
    }

    /// The events that arm subscriptions while the commit of an update waits.
    enum Race: CaseIterable {
        case firstUpdate, crossing
    }

    @Test(arguments: Race.allCases)
    func `a subscription that is armed while an update is committed fires with that update`(race: Race) async throws {
        // Reads of a file do not wait for a commit.
        let world = try await EngineWorld(stores.openKept())
        let subscription: Subscription
        switch race {
        case .firstUpdate:
            _ = try await world.subscribe("price > 50.0", key: "loads the item")
            subscription = try await put("price > 10.0", .once, on: world, [])
        case .crossing:
            try await world.publish(1)
            let found = FoundCondition(item: world.item.name, version: 1, holds: false)
            subscription = try await put("price > 10.0", on: world, [found])
        }
        let gate = CommitGate(world.store)
        async let published: Void = world.publish(11)
        try await gate.reached()
        try await world.domain.itemEngine.follow([subscription.serial], looks: true)
        gate.open()
        try await published
        #expect(try await world.titles() == ["11.0"])
        try await world.publish(12)
        #expect(try await world.titles() == ["11.0"])
    }

    /// Creates a subscription without informing the engine.
    @discardableResult private func put(
        _ trigger: String, _ policy: SubscriptionMachine.Policy = .everyCrossing, on world: EngineWorld,
        _ found: [FoundCondition]
    ) async throws -> Subscription {
        let format = try NotificationFormat(.object([.init(name: "title", value: .string("${price}"))]))
        var random = SystemRandomNumberGenerator()
        let program = try world.domain.itemEngine.conditions.condition(trigger, over: ["price": .dynamic])
        let put = try await world.store.putSubscription(
            SubscriptionRequest(
                proposed: .random(using: &random), device: world.device.serial,
                definition: .init(
                    items: [world.item.name], fields: ["price"], trigger: trigger, format: format, policy: policy),
                condition: WatchedCondition(
                    shape: program.shape.key, source: trigger, constants: ValueCoding.encode(program.constants)),
                limit: 10, found: found), at: world.domain.time.now())
        guard case .made(let subscription) = put else {
            throw StoreFault(.unavailable, "the subscription was not made")
        }
        return subscription
    }

    @Test func `a first update has an empty map as its previous values`() async throws {
        let world = try await EngineWorld(stores.open())
        _ = try await world.subscribe("!has(previous.price)", .every(coolDownSeconds: 0), key: "first")
        _ = try await world.subscribe("previous.price > 0.0", .every(coolDownSeconds: 0), key: "later")
        let errors = try await world.subscribe("previous.price == null || previous.price < 0.0", key: "error")
        try await world.publish(1)
        #expect(try await world.titles() == ["1.0"])
        let explained = try #require(try await world.domain.subscriptions.explain(errors).first)
        #expect(explained.verdict == .noValue, "a comparison with a missing member is an error")
        try await world.publish(2)
        #expect(try await world.titles() == ["1.0", "2.0"])
    }
}
