import CarillonCore
import CarillonWire
import TestStores
import Testing

@testable import CarillonSQLite
@testable import StoreConformance

/// How often a commit reads the row of a subscription that fires.
@Suite(.timeLimit(.minutes(5)))
struct FiringStatementTests {
    private let start = SubscriptionFixture.start

    /// Returns the results of a commit, and the number of statements that read subscriptions. A statement counts each time that it runs.
    private func commit(
        _ operations: [InboxOperation], to store: SQLiteStore
    ) async throws -> (results: [InboxResult], reads: Int) {
        let traced = try await store.tracing { try await store.commit(operations) }
        return (traced.value, traced.statements.count { $0.hasPrefix("SELECT") && $0.contains("FROM subscription") })
    }

    @Test func `the row of a subscription is read once for a firing`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, item) = (fixture.base.sqlite, try fixture.item("a").name)
        let subscription = try await fixture.subscribe(1)
        let target = fixture.target(subscription)
        let numbers = try #require(try await fixture.update("a", firing: [[target]]))
        let effect = Effect.fired(target, on: item, by: numbers[0], at: start)
        let fired = try await commit([fixture.notified(1, subscription, effect)], to: store)
        #expect(fired.results == [.stored(replaced: nil)])
        #expect(fired.reads == 1)
    }

    @Test func `a subscription that does not have the item of a firing is read for its own sake`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, other) = (fixture.base.sqlite, try fixture.item("b").name)
        let subscription = try await fixture.subscribe(1)
        let effect = Effect.fired(fixture.target(subscription), on: other, by: 1, at: start)
        let fired = try await commit([fixture.notified(1, subscription, effect)], to: store)
        #expect(fired.results == [.originGone])
        #expect(fired.reads == 2)
    }

    @Test func `a subscription can end in the commit in which it fires`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, item) = (fixture.base.sqlite, try fixture.item("a").name)
        let subscription = try await fixture.subscribe(1)
        let target = fixture.target(subscription)
        let numbers = try #require(try await fixture.update("a", firing: [[target], [target]]))
        let effects = numbers.map { Effect.fired(target, on: item, by: $0, at: start) }
        let origin = DeviceOrigin(
            subscription.device, OriginKey(kind: .subscription, serial: subscription.serial.rawValue))
        let operations: [InboxOperation] = [
            fixture.notified(1, subscription, effects[0]), .end(origin, because: .unregistered, at: start),
            fixture.notified(2, subscription, effects[1]),
        ]
        let results = try await store.commit(operations)
        #expect(results == [.stored(replaced: nil), .finished, .originGone])
        #expect(try await fixture.base.waiting().isEmpty)
        #expect(try await store.rowCount(of: "subscription") == 0)
    }
}
