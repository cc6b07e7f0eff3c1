import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import Foundation
import Logging
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Waiting updates, memory and concurrent firings have a limit each, and an owner.
@Suite(.timeLimit(.minutes(5)))
struct ItemEngineBoundsTests {
    @Test func `an app with waiting updates leaves capacity for others`() async throws {
        let world = try await EngineWorld(stores.open())
        let other = try await world.domain.apps.create(try #require(AppID("com.example.other"))).serial
        func updates(_ app: AppSerial, _ items: Int, _ each: Int) throws -> [PublishedUpdate] {
            let text = ItemValue(.string(String(repeating: "x", count: 4000)))
            return try (0..<items * each).map { number in
                PublishedUpdate(
                    ItemUpdate(["x": text]), to: ItemKey(app: app, name: try #require(ItemName("n\(number % items)"))),
                    mode: .merge)
            }
        }
        // They are in memory, so that all are handed in before any is taken.
        _ = await world.domain.itemEngine.publish(try updates(world.device.app, 40, 1) + updates(other, 1, 1))
        let results = await world.domain.itemEngine.publish(
            try updates(world.device.app, 40, 200) + updates(other, 1, 1))
        let taken = results.dropLast().count { !Self.isBusy($0) }
        #expect((4000...4200).contains(taken), "16 MiB of them")
        #expect(results.last.map(Self.isBusy) == false)
    }

    @Test func `an item compares a thousand expressions, and no more`() async throws {
        var limits = ItemEngine.Limits()
        limits.quotaPercent = 100
        let world = try await EngineWorld(stores.open(), limits: limits)
        func condition(_ numbers: Range<Int>) -> String {
            numbers.map { "fields.f\($0)>1.0" }.joined(separator: "&&")
        }
        for number in 0..<10 {
            _ = try await world.subscribe(condition(100 * number..<100 * number + 100), key: "\(number)")
        }
        _ = try await world.subscribe(condition(5..<90), key: "known")
        let refusal = await #expect(throws: Refusal.self) { _ = try await world.subscribe("fields.new>1.0", key: "new") }
        #expect(refusal?.code == .triggerForbidden)
        _ = try await world.domain.subscriptions.remove(.init(key: "3"), of: world.device)
        _ = try await world.subscribe("fields.new>1.0", key: "new")
    }

    @Test func `more firings than one row can contain are all delivered`() async throws {
        let world = try await EngineWorld(stores.open())
        let serials = (1...5000).map { Firing.Target(subscription: SubscriptionSerial($0), revision: 1) }
        var state = ItemState(.merge)
        state.apply(.init(["price": ItemValue(.double(1))], at: world.domain.time.now()))
        let firing = Firing(item: world.item.name, app: world.item.app, state: state, targets: serials)
        let written = try await world.store.commitItem(
            ItemCommit(key: world.item, item: StoredItem(state: state, version: 1), firings: [firing]))
        #expect(try await world.store.firingNumbers(of: world.item) == written)
        guard case .readable(let read)? = try await world.store.nextFiring(of: world.item) else {
            throw StoreFault(.unavailable, "")
        }
        #expect(read.number == written?.first && read.firing.targets == serials)
        // None of them exists: the row is removed all the same.
        try await world.domain.itemEngine.notifyRest()
        #expect(try await world.store.firingNumbers(of: world.item).isEmpty)
    }

    private static func isBusy(_ result: Result<ItemReceipt, any Error>) -> Bool {
        if case .failure(let error) = result { (error as? Refusal)?.code == .itemBusy } else { false }
    }

    private func engine(
        _ world: EngineWorld, _ limits: ItemEngine.Limits = .init(), of store: (any Store)? = nil
    ) -> ItemEngine {
        let store = store ?? world.store
        return ItemEngine(
            store: store, home: world.domain.runtime, documents: AppDocuments(store: store), firings: world.domain.firings,
            conditions: world.domain.itemEngine.conditions, time: world.domain.time, ticks: .system,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
            limits: limits)
    }

    /// Queued at once, after an update each has loaded the items: so none is processed before all are queued.
    private func publish(_ updates: [(AppSerial, String, bytes: Int)], to engine: ItemEngine) async throws
        -> [Result<ItemReceipt, any Error>]
    {
        func update(_ key: ItemKey, _ bytes: Int) -> PublishedUpdate {
            PublishedUpdate(
                ItemUpdate(["x": ItemValue(.string(String(repeating: "x", count: bytes)))]), to: key, mode: .merge)
        }
        let updates = try updates.map { app, item, bytes in
            update(ItemKey(app: app, name: try #require(ItemName(item))), bytes)
        }
        for key in Set(updates.map(\.key)) { _ = await engine.publish([update(key, 1)]) }
        while await !engine.isIdle { await Task.yield() }
        return await engine.publish(updates)
    }

    @Test func `a thousand updates of an item wait, and no more`() async throws {
        let world = try await EngineWorld(stores.open())
        let engine = engine(world)
        let updates = (0..<1500).map { _ in (world.device.app, "i", bytes: 1) }
        let results = try await publish(updates, to: engine)
        #expect(results.map(Self.isBusy) == (0..<1500).map { $0 >= ItemLimits.waitingUpdates })
        #expect(try await publish(Array(updates.prefix(1000)), to: engine).count(where: Self.isBusy) == 0)
        let taken = try await engine.item(of: world.item)?.version
        #expect(taken == 2002)
    }

    @Test func `a mebibyte of updates of an item waits, and no more`() async throws {
        let world = try await EngineWorld(stores.open())
        let results = try await publish((0..<400).map { _ in (world.device.app, "i", bytes: 4000) }, to: engine(world))
        let taken = results.count { !Self.isBusy($0) }
        #expect((240...262).contains(taken), "\(taken)")
    }

    @Test func `the waiting updates of all apps together have a limit too`() async throws {
        let world = try await EngineWorld(stores.open())
        var limits = ItemEngine.Limits()
        limits.waitingBytes = 50_000
        let engine = engine(world, limits)
        var apps: [AppSerial] = []
        for name in ["one", "two", "three"] {
            apps.append(try await world.domain.apps.create(try #require(AppID("com.example.\(name)"))).serial)
        }
        let updates = (0..<30).map { (apps[$0 % 3], "i", bytes: 4000) }
        let taken = try await publish(updates, to: engine).count { !Self.isBusy($0) }
        #expect((10...12).contains(taken), "\(taken)")
        // They are no more counted once they were taken.
        #expect(try await publish(Array(updates.prefix(10)), to: engine).count(where: Self.isBusy) == 0)
    }

    @Test func `an app's waiting bytes are free again when its updates were taken`() async throws {
        let world = try await EngineWorld(stores.open())
        var limits = ItemEngine.Limits()
        limits.waitingBytesOfApp = 50_000
        let engine = engine(world, limits)
        let updates = (0..<30).map { _ in (world.device.app, "i", bytes: 4000) }
        for _ in 0..<3 {
            let taken = try await publish(updates, to: engine).count { !Self.isBusy($0) }
            #expect((10...12).contains(taken), "\(taken)")
        }
    }

    @Test func `an app that is deleted leaves no items and no firings`() async throws {
        let world = try await EngineWorld(stores.open())
        _ = try await world.subscribe("price > 1.0")
        try await world.leave(2, version: 1)
        #expect(try await stores.count(.firings, in: world.store) == 1)
        #expect(try await stores.count(.items, in: world.store) == 1)
        try await world.domain.deletions.delete(try #require(AppID("com.example.app")))
        while try await !world.domain.deletions.proceed() {}
        #expect(try await stores.count(.firings, in: world.store) == 0)
        #expect(try await stores.count(.items, in: world.store) == 0)
    }

    @Test(arguments: [(20, 1 << 40), (10_000, 100_000)])
    func `items that are not wanted leave memory, by number and by weight`(count: Int, bytes: Int) async throws {
        let world = try await EngineWorld(stores.open())
        var limits = ItemEngine.Limits()
        limits.items = count
        limits.bytes = bytes
        let engine = engine(world, limits)
        // The use of each is counted anew with each 64th.
        for number in 0..<192 {
            _ = try await publish([(world.device.app, "i\(number)", bytes: 4000)], to: engine)
        }
        while await !engine.isIdle { await Task.yield() }
        #expect(await engine.population.items <= (count == 20 ? 20 : 70))
        let again = try await publish([(world.device.app, "i0", bytes: 1)], to: engine)
        #expect(try again.first?.get().version == 4)
    }

    /// Otherwise a batch of 256 updates could cause millions of firings before any is delivered.
    @Test(arguments: [(limit: 3, rows: 1), (limit: 100, rows: 2)])
    func `a batch with enough firings is written before it continues`(limit: Int, rows: Int) async throws {
        let store = try await stores.openKept()
        let world = try await EngineWorld(store)
        for key in ["a", "b", "c"] { _ = try await world.subscribe("price > 1.0", .every(coolDownSeconds: 0), key: key) }
        var limits = ItemEngine.Limits()
        limits.targetsAtOnce = limit
        let engine = engine(world, limits)
        _ = try await publish([(world.device.app, "i", bytes: 1)], to: engine)
        while await !engine.isIdle { try await Task.sleep(for: .milliseconds(2)) }
        let snapshots = Snapshots(of: store)
        snapshots.begin()
        _ = await engine.publish(
            [2.0, 3].map {
                PublishedUpdate(ItemUpdate(["price": ItemValue(.double($0))]), to: world.item, mode: .merge)
            })
        while await !engine.isIdle { try await Task.sleep(for: .milliseconds(2)) }
        snapshots.end()
        var most = 0
        for snapshot in snapshots.taken {
            let then = try await stores.openCopy(snapshot.copy)
            most = max(most, try await stores.count(.firings, in: then))
            try await stores.close(then)
        }
        #expect(most == rows)
    }

    @Test func `an app's updates have a rate, and another's are its own`() async throws {
        var rateLimits = RateLimits.Settings()
        rateLimits.appUpdates = Rate(perSecond: 1, burst: 3)
        let world = try await EngineWorld(
            stores.open(), rateLimits: rateLimits, ticks: TickSource { 0 })
        let other = try await world.domain.apps.create(try #require(AppID("com.example.other"))).serial
        let update = (item: world.item.name, fields: [WrittenField("price", .number("1"))], place: ItemUpdate.Place?.none)
        let results = await world.domain.items.publish(Array(repeating: update, count: 5), of: world.device.app)
        let codes = results.map { result -> ErrorCode? in
            if case .failure(let error) = result { (error as? Refusal)?.code } else { nil }
        }
        #expect(codes == [nil, nil, nil, .rateLimited, .rateLimited])
        let refusal = await #expect(throws: Refusal.self) { try await world.publish(2) }
        #expect(refusal?.code == .rateLimited && refusal?.retryAfterSeconds != nil)
        _ = try await world.domain.items.publish(update.fields, to: update.item, of: other)
    }
}
