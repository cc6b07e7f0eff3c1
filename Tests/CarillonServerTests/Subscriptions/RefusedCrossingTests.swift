import CarillonExpression
import CarillonWire
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// A crossing that does not fit fires once, with a later update at which the condition is true.
@Suite(.timeLimit(.minutes(5)))
struct RefusedCrossingTests {
    // MARK: Updates of the item

    @Test func `a crossing that is refused before another of its batch is delivered does not fire again`() async throws {
        let world = try await EngineWorld(stores.open(Self.settings))
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0", .everyCrossing)
        for result in await publish([Self.large(11)], in: world) { _ = try result.get() }
        #expect(try await world.titles().isEmpty, "it does not fit")
        let prices = [Self.small(5), Self.large(11), Self.small(5), Self.small(12)]
        for result in await publish(prices, in: world) { _ = try result.get() }
        #expect(try await world.titles() == ["12"])
        try await world.publish(13)
        #expect(try await world.titles() == ["12"])
        try await world.publish(5)
        try await world.publish(14)
        #expect(try await world.titles() == ["14.0"])
    }

    @Test func `a refused crossing is not lost if the next update of its batch cannot be written`() async throws {
        var limits = ItemEngine.Limits()
        // Each update that fires is written alone.
        limits.targetsAtOnce = 1
        let store = try await stores.openKept(Self.settings)
        let world = try await EngineWorld(store, limits: limits)
        try await world.publish(1)
        _ = try await world.subscribe("price > 10.0", .everyCrossing)
        let gate = CommitGate(store)
        async let published = publish([Self.large(11), Self.small(12)], in: world)
        try await passRefusal(gate, in: store)
        stores.refuseChanges(of: store, with: StoreFault(.full, "the disk is full"))
        gate.open()
        let results = await published
        stores.refuseChanges(of: store, with: nil)
        _ = try results[0].get()
        #expect(throws: StoreFault.self) { try results[1].get() }
        #expect(try await world.titles().isEmpty)
        try await world.publish(13)
        #expect(try await world.titles() == ["13.0"])
    }

    // MARK: Firings that were left

    @Test(arguments: [true, false])
    func `a refused crossing that was left fires later, unless another of the item is delivered`(isOtherRefused: Bool)
        async throws
    {
        let store = try await stores.open(Self.settings)
        do {
            let world = try await EngineWorld(store)
            try await world.publish(1)
            let targets = [target(try await world.subscribe("price > 10.0", .everyCrossing))]
            try await leave(11, isLarge: true, version: 2, targets, in: world)
            try await leave(12, isLarge: isOtherRefused, version: 3, targets, in: world)
        }
        let world = try await EngineWorld(store)
        let engine = world.domain.itemEngine
        // The item is loaded before they are delivered.
        await #expect(throws: Refusal.self) { try await world.publish(5) }
        let first = try await nextFiring(in: world)
        #expect(await engine.notify(first))
        // The rows are read when no other firing waits.
        #expect(try await world.titles().isEmpty)
        #expect(await engine.refusedOfRest == [world.item: Set(first.firing.targets)])
        try await engine.notifyRest()
        #expect(await engine.refusedOfRest.isEmpty)
        #expect(try await world.titles() == (isOtherRefused ? [] : ["12"]))
        let expected = [isOtherRefused ? "13.0" : "12"]
        for price in [13.0, 14] {
            try await world.publish(price)
            #expect(try await world.titles() == expected)
        }
    }

    @Test(arguments: [true, false])
    func `a refused crossing that cannot be read fires later, unless another crossing is delivered before`(
        crossesBefore: Bool
    ) async throws {
        let store = try await stores.open(Self.settings)
        do {
            let world = try await EngineWorld(store)
            try await world.publish(1)
            let targets = [target(try await world.subscribe("price > 10.0", .everyCrossing))]
            try await leave(11, isLarge: true, version: 2, targets, in: world)
        }
        let world = try await EngineWorld(store)
        let engine = world.domain.itemEngine
        // The item is loaded before the firing is delivered.
        await #expect(throws: Refusal.self) { try await world.publish(5) }
        try await stores.makeUnreadable(.conditionShapes, in: store)
        try await engine.notifyRest()
        #expect(try await world.titles().isEmpty)
        #expect(await engine.refusedOfRest[world.item]?.count == 1)
        try await stores.makeReadable(.conditionShapes, in: store)
        for price in crossesBefore ? [5.0, 12] : [12] { try await world.publish(price) }
        #expect(try await world.titles() == (crossesBefore ? ["12.0"] : []))
        try await engine.notifyRest()
        #expect(await engine.refusedOfRest.isEmpty)
        for price in [13.0, 14] {
            try await world.publish(price)
            #expect(try await world.titles() == [crossesBefore ? "12.0" : "13.0"])
        }
    }

    @Test(arguments: [true, false])
    func `a refusal is omitted if the row reports that the subscription fired, or that its condition was true`(
        hasFired: Bool
    )
        async throws
    {
        let world = try await EngineWorld(stores.open())
        try await world.publish(hasFired ? 1 : 11)
        let target = target(try await world.subscribe("price > 10.0", .everyCrossing))
        if hasFired { try await world.publish(11) }
        let expected = hasFired ? ["11.0"] : []
        #expect(try await world.titles() == expected)
        let engine = world.domain.itemEngine
        await engine.keepRefused([target], of: world.item)
        await engine.rearmRefused(of: world.item)
        try await world.publish(12)
        #expect(try await world.titles() == expected)
    }

    @Test func `a crossing that a load finds while the rest of its firing is delivered fires once`() async throws {
        // Reads of a file do not wait for a commit.
        let store = try await stores.openKept(Self.settings)
        do {
            let world = try await EngineWorld(store)
            try await world.publish(1)
            let target = target(try await world.subscribe("price > 10.0", .everyCrossing))
            // The delivery takes two steps.
            let unknown = (1...256).map { Firing.Target(subscription: SubscriptionSerial(1_000_000 + $0), revision: 1) }
            try await leave(11, isLarge: true, version: 2, [target] + unknown, in: world)
        }
        let world = try await EngineWorld(store)
        let engine = world.domain.itemEngine
        let gate = CommitGate(store)
        async let notified: Void = engine.notifyRest()
        try await passRefusal(gate, in: store)
        try await engine.checkNeverFired()
        // The crossing fired, and is not written.
        try await eventually { await engine.isWritingLast(of: world.item) }
        gate.open()
        try await notified
        try await engine.notifyRest()
        #expect(try await world.titles() == ["11"])
        try await world.publish(13)
        #expect(try await world.titles() == ["11"])
        try await world.publish(5)
        try await world.publish(14)
        #expect(try await world.titles() == ["14.0"])
    }

    @Test(arguments: [true, false])
    func `a crossing that is refused while its item is loaded fires with the next update that is written`(
        isFirstWritten: Bool
    ) async throws {
        let store = try await stores.open(Self.settings)
        let world = try await EngineWorld(store)
        try await world.publish(1)
        let target = target(try await world.subscribe("price > 10.0", .everyCrossing))
        try await leave(11, isLarge: true, version: 2, [target], in: world)
        let isPaused = Mutex(false)
        let mayGoOn = Mutex(false)
        // The load has read the targets of firings, and no subscription.
        let documents = DocumentReadings(
            store,
            beforeLookUp: { number in
                guard number == 1 else { return }
                isPaused.withLock { $0 = true }
                try await eventually { mayGoOn.withLock { $0 } }
            })
        let engine = ItemEngine(
            store: store, home: world.domain.runtime, documents: AppDocuments(store: documents),
            firings: world.domain.firings,
            conditions: world.domain.itemEngine.conditions, time: world.domain.time, ticks: .system,
            logger: LogCatcher().logger)
        async let published = publish([Self.small(12)], in: world, to: engine)
        try await eventually { isPaused.withLock { $0 } }
        let firing = try await nextFiring(in: world)
        async let isNotified = engine.notify(firing)
        try await eventually { await !engine.refusedOfRest.isEmpty }
        if !isFirstWritten { try await stores.refuse(.itemUpdate, in: store) }
        mayGoOn.withLock { $0 = true }
        #expect(await isNotified)
        for result in await published {
            if isFirstWritten { _ = try result.get() } else { #expect(throws: StoreFault.self) { try result.get() } }
        }
        if !isFirstWritten { try await stores.allow(.itemUpdate, in: store) }
        let expected = [isFirstWritten ? "12" : "13"]
        for price in [13, 14] {
            for result in await publish([Self.small(price)], in: world, to: engine) { _ = try result.get() }
            try await eventually { await engine.isIdle }
            #expect(try await world.titles() == expected)
        }
    }

    // MARK: Prices

    /// A large notification does not fit.
    private static let settings = StoreSettings(inbox: InboxLimits(bytes: 2000))

    private static func small(_ price: Int) -> ItemValue { ItemValue(.double(Double(price)), digits: "\(price)") }

    /// A price whose notification is large.
    private static func large(_ price: Int) -> ItemValue {
        ItemValue(.double(Double(price)), digits: "\(price)." + String(repeating: "0", count: 3000))
    }

    /// Publishes updates that the item processes in one batch if it is in memory.
    private func publish(
        _ prices: [ItemValue], in world: EngineWorld, to engine: ItemEngine? = nil
    ) async -> [Result<ItemReceipt, any Error>] {
        await (engine ?? world.domain.itemEngine).publish(
            prices.map { PublishedUpdate(ItemUpdate(["price": $0]), to: world.item, mode: .merge) })
    }

    // MARK: Firings

    private func target(_ subscription: Subscription) -> Firing.Target {
        Firing.Target(subscription: subscription.serial, revision: subscription.machine.revision)
    }

    /// Commits an update and its firing, as before a kill of the process that would deliver the firing.
    ///
    /// - Parameter isLarge: Whether the notification of the firing is large; that of a later firing with this price is small.
    private func leave(
        _ price: Int, isLarge: Bool, version: Int64, _ targets: [Firing.Target], in world: EngineWorld
    ) async throws {
        func state(_ value: ItemValue) -> ItemState {
            var state = ItemState(.merge)
            state.apply(.init(["price": value], at: world.domain.time.now()))
            return state
        }
        let fired = state(isLarge ? Self.large(price) : Self.small(price))
        _ = try await world.store.commitItem(
            ItemCommit(
                key: world.item, item: StoredItem(state: state(Self.small(price)), version: version),
                firings: [Firing(item: world.item.name, app: world.item.app, state: fired, targets: targets)]))
    }

    private func nextFiring(in world: EngineWorld) async throws -> StoredFiring {
        guard case .readable(let firing)? = try await world.store.nextFiring(of: world.item) else {
            throw StoreFault(.unavailable, "there is no firing")
        }
        return firing
    }

    /// Returns when the step that refused a crossing is committed. The gate is closed then.
    private func passRefusal(_ gate: CommitGate, in store: any Store) async throws {
        try await gate.reached()
        while try await !stores.lastFirings(in: store).contains(where: { $0 < 0 }) {
            gate.pass()
            try await gate.reached()
        }
    }
}

extension ItemEngine {
    /// Whether an item has taken all its work, and is not done with it.
    fileprivate func isWritingLast(of key: ItemKey) -> Bool { items[key].map { $0.isDraining && !$0.hasWork } ?? false }
}
