import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import Testing

@testable import CarillonSQLite

/// The rows that subscriptions leave for the engine of items, however they end.
@Suite(.timeLimit(.minutes(1)))
struct SubscriptionRowTests {
    private let start = SubscriptionFixture.start

    private func subscribe(_ number: UInt64, _ fixture: SubscriptionFixture) async throws -> Subscription {
        let condition = WatchedCondition(shape: "shape", source: "price > 1", constants: nil)
        let definition = try SubscriptionFixture.definition(["a", "b"])
        return try await fixture.subscribe(fixture.wish(number, definition, condition: condition))
    }

    private func remove(_ subscription: Subscription, _ store: SQLiteStore) async throws {
        _ = try await store.endSubscriptions([subscription.serial], of: subscription.device)
        let ended = EndedSubscription(serial: subscription.serial, device: subscription.device)
        try await store.removeSubscriptions([ended], at: start)
    }

    /// Takes what was left for the engine, and expects that it is what these subscriptions watched.
    private func expectUnwatched(_ subscriptions: [Subscription], _ fixture: SubscriptionFixture) async throws {
        let store = fixture.base.sqlite
        let (shapes, stray) = try await store.read { db in
            let shapes = try Int.fetchOne(db, sql: "SELECT count(shape) FROM unwatched")
            let stray = try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM subscription_item
                    WHERE NOT EXISTS (SELECT 1 FROM subscription WHERE serial = subscription_item.subscription)
                    """)
            return (shapes, stray)
        }
        var expected: [Unwatched] = []
        for subscription in subscriptions {
            for name in ["a", "b"] {
                expected.append(Unwatched(item: try fixture.item(name), subscription: subscription.serial))
            }
        }
        #expect(shapes == expected.count)
        #expect(stray == 0)
        let taken = try await store.takeUnwatched(limit: 100)
        #expect(taken.count == expected.count)
        #expect(expected.allSatisfy { taken.contains($0) })
    }

    @Test func `a subscription leaves what it watched, however it ends`() async throws {
        let fixture = try await SubscriptionFixture(StoreKind.memory)
        let store = fixture.base.sqlite
        let removed = try await subscribe(1, fixture)
        let ofDevice = try await subscribe(2, fixture)
        try await fixture.sign(.signedIn(try #require(UserID("ada"))))
        let ofUser = try await subscribe(3, fixture)
        let alsoOfUser = try await subscribe(4, fixture)
        try await expectUnwatched([], fixture)

        try await remove(removed, store)
        try await expectUnwatched([removed], fixture)
        try await remove(removed, store)
        try await expectUnwatched([], fixture)
        try await fixture.sign(.signedOut)
        try await expectUnwatched([ofUser, alsoOfUser], fixture)
        _ = try await store.deleteDevice(fixture.device, at: start)
        try await expectUnwatched([ofDevice], fixture)
        #expect(try await store.rowCount(of: "condition_shape") == 0)
    }

    @Test func `the subscriptions of a deleted app leave what they watched`() async throws {
        let fixture = try await SubscriptionFixture(StoreKind.memory)
        let store = fixture.base.sqlite
        let one = try await subscribe(1, fixture)
        let two = try await subscribe(2, fixture)
        _ = try await store.deleteApp(fixture.base.device.appID, at: start)
        while try await !store.continueDeletions(at: start, limit: 1).isDone {}
        try await expectUnwatched([one, two], fixture)
        #expect(try await store.rowCount(of: "app") == 0)
    }
}
