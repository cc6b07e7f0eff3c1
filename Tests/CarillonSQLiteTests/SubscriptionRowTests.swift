import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The numbers of items and subscriptions of an app beside the rows, and the rows that subscriptions leave for the engine of items.
@Suite(.timeLimit(.minutes(5)))
struct SubscriptionRowTests {
    private let start = SubscriptionFixture.start

    private func subscribe(_ number: UInt64, _ fixture: SubscriptionFixture) async throws -> Subscription {
        let condition = WatchedCondition(shape: "shape", source: "price > 1", constants: nil)
        let definition = try SubscriptionFixture.definition(["a", "b"])
        return try await fixture.subscribe(fixture.request(number, definition, condition: condition))
    }

    private func remove(_ subscription: Subscription, _ store: SQLiteStore) async throws {
        _ = try await store.endSubscriptions([subscription.serial], of: subscription.device)
        let ended = EndedSubscription(serial: subscription.serial, device: subscription.device)
        try await store.removeSubscriptions([ended], at: start)
    }

    /// Applies all hand-overs, and expects that they contain the items of these subscriptions.
    private func expectRemovals(of subscriptions: [Subscription], _ fixture: SubscriptionFixture) async throws {
        let store = fixture.base.sqlite
        let stray = try await store.read { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM subscription_item
                    WHERE NOT EXISTS (SELECT 1 FROM subscription WHERE serial = subscription_item.subscription)
                    """)
        }
        #expect(stray == 0)
        let handOvers = try await store.handOvers()
        var removed: [SubscriptionSerial: Set<ItemKey>] = [:]
        for handOver in handOvers {
            guard case .subscriptionRemoved(let subscription, from: let item?, shape: let shape)? = ItemHandOver(handOver)
            else { continue }
            #expect(shape != nil)
            removed[subscription, default: []].insert(item)
        }
        let items: Set<ItemKey> = [try fixture.item("a"), try fixture.item("b")]
        #expect(removed == Dictionary(uniqueKeysWithValues: subscriptions.map { ($0.serial, items) }))
        #expect(handOvers.count == subscriptions.count * items.count)
        try await store.apply(handOvers)
    }

    /// The numbers of items and subscriptions of all apps.
    private func expectCounts(_ store: SQLiteStore, items: Int64, subscriptions: Int64) async throws {
        let (counted, rows) = try await store.read { db in
            func numbers(_ sql: String) throws -> [Int64] {
                try Row.fetchAll(db, sql: sql).flatMap { row -> [Int64] in [row[0], row[1]] }
            }
            let counted = try numbers(
                """
                SELECT (SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'items'),
                    (SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'subscriptions')
                """)
            let rows = try numbers("SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM subscription)")
            return (counted, rows)
        }
        #expect(counted == [items, subscriptions])
        #expect(rows == [items, subscriptions])
    }

    @Test func `the numbers of items and subscriptions follow the rows`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        for item in ["a", "b", "c", "d"] { #expect(try await fixture.update(item) != nil) }
        _ = try await fixture.update("a", version: 2)
        try await expectCounts(store, items: 4, subscriptions: 0)
        let removed = try await subscribe(1, fixture)
        let keyed = try SubscriptionFixture.definition(key: "k")
        _ = try await fixture.subscribe(fixture.request(2, keyed))
        _ = try await fixture.put(fixture.request(3, keyed))
        try await fixture.sign(.signedIn(try #require(UserID("ada"))))
        for number in UInt64(4)...5 { _ = try await subscribe(number, fixture) }
        let other = try await fixture.anotherDevice().serial
        _ = try await fixture.subscribe(6, of: other)
        try await expectCounts(store, items: 4, subscriptions: 5)

        _ = try await store.endSubscriptions([removed.serial], of: removed.device)
        try await expectCounts(store, items: 4, subscriptions: 5)
        try await remove(removed, store)
        try await remove(removed, store)
        try await expectCounts(store, items: 4, subscriptions: 4)
        try await fixture.sign(.signedOut)
        try await expectCounts(store, items: 4, subscriptions: 2)
        _ = try await store.deleteDevice(fixture.device, at: start)
        try await expectCounts(store, items: 4, subscriptions: 1)
        let (watched, unwatched) = (try fixture.item("a"), try fixture.item("d"))
        #expect(try await store.deleteItem(watched, ifIdleSince: start) == false)
        #expect(try await store.deleteItem(unwatched, ifIdleSince: start))
        #expect(try await store.deleteItem(unwatched, ifIdleSince: nil) == false)
        try await expectCounts(store, items: 3, subscriptions: 1)
        #expect(try await store.deleteItem(watched, ifIdleSince: nil))
        try await expectCounts(store, items: 2, subscriptions: 1)

        _ = try await store.deleteApp(fixture.base.device.appID, at: start)
        _ = try await store.continueDeletions(at: start, limit: 1)
        try await expectCounts(store, items: 1, subscriptions: 1)
        while try await !store.continueDeletions(at: start, limit: 1).isDone {}
        try await expectCounts(store, items: 0, subscriptions: 0)
    }

    /// The statements that contain one of the words. A statement counts once.
    private func statements(
        with words: [String], of store: SQLiteStore, in work: () async throws -> Void
    ) async throws -> Int {
        let seen = Set(try await store.tracing(work).statements)
        return seen.count { sql in words.contains { sql.contains($0) } }
    }

    @Test func `a change of the numbers runs one statement`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        func count(_ work: () async throws -> Void) async throws -> Int {
            try await statements(with: ["VALUES (?, 'items'", "VALUES (?, 'subscriptions'"], of: store, in: work)
        }
        let item = try await count { _ = try await fixture.update("a") }
        #expect(item == 1)
        let update = try await count { _ = try await fixture.update("a", version: 2) }
        #expect(update == 0)
        var ended: [EndedSubscription] = []
        for number in UInt64(1)...3 {
            let new = try await count {
                let subscription = try await subscribe(number, fixture)
                ended.append(EndedSubscription(serial: subscription.serial, device: subscription.device))
            }
            #expect(new == 1)
        }
        let deleted = try fixture.item("a")
        let removal = try await count { _ = try await store.deleteItem(deleted, ifIdleSince: nil) }
        #expect(removal == 1)
        _ = try await store.endSubscriptions(ended.map(\.serial), of: fixture.device)
        let removals = try await count { try await store.removeSubscriptions(ended, at: start) }
        #expect(removals == 1)
    }

    @Test func `the end of a device runs as many statements as the documentation lists`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let without = try await fixture.anotherDevice().serial
        for number in UInt64(1)...3 { _ = try await subscribe(number, fixture) }
        let words = ["subscription_item", "DELETE FROM subscription WHERE", "VALUES (?, 'subscriptions'", "hand_over"]
        for (device, expected) in [(without, 2), (fixture.device, 4)] {
            let count = try await statements(with: words, of: store) {
                _ = try await store.deleteDevice(device, at: start)
            }
            #expect(count == expected)
        }
    }

    @Test func `the numbers follow the rows when other work of the commit fails`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, device, item) = (fixture.base.sqlite, fixture.device, try fixture.item("a"))
        _ = try await fixture.update("a")
        for number in UInt64(1)...2 { _ = try await subscribe(number, fixture) }
        let third = try fixture.request(3, SubscriptionFixture.definition())
        let now = start
        let gate = Gate()
        async let before: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await store.putSubscription(third, at: now) },
            {
                try await store.group.run { db in
                    try SubscriptionTable(db).remove("device = ?", [device.rawValue])
                    _ = try ItemTable(db).delete(item, ifIdleSince: nil)
                    throw StoreFault(.full, "its own")
                }
            },
            { _ = try await fixture.update("b") },
        ]
        let results = await together(works) { gate.open() }
        try await before
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        try await expectCounts(store, items: 2, subscriptions: 3)
    }

    @Test func `a subscription leaves its item, however it ends`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let removed = try await subscribe(1, fixture)
        let ofDevice = try await subscribe(2, fixture)
        try await fixture.sign(.signedIn(try #require(UserID("ada"))))
        let ofUser = try await subscribe(3, fixture)
        let alsoOfUser = try await subscribe(4, fixture)
        try await expectRemovals(of: [], fixture)

        try await remove(removed, store)
        try await expectRemovals(of: [removed], fixture)
        try await remove(removed, store)
        try await expectRemovals(of: [], fixture)
        try await fixture.sign(.signedOut)
        try await expectRemovals(of: [ofUser, alsoOfUser], fixture)
        _ = try await store.deleteDevice(fixture.device, at: start)
        try await expectRemovals(of: [ofDevice], fixture)
        #expect(try await store.rowCount(of: "condition_shape") == 0)
    }

    @Test func `the subscriptions of a deleted app leave their items`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let one = try await subscribe(1, fixture)
        let two = try await subscribe(2, fixture)
        _ = try await store.deleteApp(fixture.base.device.appID, at: start)
        while try await !store.continueDeletions(at: start, limit: 1).isDone {}
        try await expectRemovals(of: [one, two], fixture)
        #expect(try await store.rowCount(of: "app") == 0)
    }
}
