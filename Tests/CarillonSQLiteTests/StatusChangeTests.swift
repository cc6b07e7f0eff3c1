import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The effect of a change of a device's status on the rows of its subscriptions.
@Suite(.timeLimit(.minutes(5)))
struct StatusChangeTests {
    private let start = SubscriptionFixture.start

    private func change(
        _ device: DeviceSerial, _ store: SQLiteStore, to status: DeviceStatus
    ) async throws {
        let now = start
        let result = try await store.changeRegistration(of: device, at: now) { current in
            var changed = current
            changed.status = status
            changed.statusAt = current.statusAt.adding(milliseconds: 1)
            return .becomes(changed)
        }
        _ = try #require(result).get()
    }

    private func revisions(_ store: SQLiteStore) async throws -> [Int64] {
        try await store.read { db in try Int64.fetchAll(db, sql: "SELECT revision FROM subscription ORDER BY serial") }
    }

    private func says(token: String) throws -> DeviceProfile {
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: token), environment: .production)
        return profile
    }

    @Test func `each change of the status increments the revision of subscriptions, and the engine follows some`()
        async throws
    {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, device) = (fixture.base.sqlite, fixture.device)
        _ = try await fixture.subscribe(1)
        let ended = try await fixture.subscribe(2)
        _ = try await store.endSubscriptions([ended.serial], of: device)
        let other = try await fixture.anotherDevice().serial
        _ = try await fixture.subscribe(3, of: other)
        // The first row of the device begins with the suspension.
        #expect(try await store.rowCount(of: "device_profile") == 0)
        try await change(device, store, to: .suspended(.tokenDead))
        #expect(try await revisions(store) == [2, 1, 1])
        #expect(try await store.takeChanged() == [device])
        try await change(device, store, to: .suspended(.byOperator))
        #expect(try await revisions(store) == [3, 1, 1])
        #expect(try await store.takeChanged().isEmpty)
        try await change(device, store, to: .suspended(.byOperator))
        #expect(try await revisions(store) == [3, 1, 1])
        try await change(device, store, to: .registered)
        #expect(try await revisions(store) == [4, 1, 1])
        #expect(try await store.takeChanged() == [device])
    }

    @Test func `a device whose subscriptions ended is not followed`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, device) = (fixture.base.sqlite, fixture.device)
        let ended = try await fixture.subscribe(1)
        _ = try await store.endSubscriptions([ended.serial], of: device)
        try await fixture.suspend(device)
        try await fixture.resume(device)
        #expect(try await store.takeChanged().isEmpty)
        #expect(try await revisions(store) == [1])
    }

    @Test func `a device that loses its token is followed`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let profile = try says(token: "aa01")
        let loser = try await fixture.anotherDevice(1, profile: profile).serial
        _ = try await fixture.subscribe(1, of: loser)
        let winner = try await fixture.anotherDevice(2).serial
        _ = try await fixture.subscribe(2, of: winner)
        _ = try await store.changeRegistration(of: winner, at: start) { _ in .reports(profile, confirms: true) }
        #expect(try await store.registration(of: loser)?.status == .suspended(.tokenTaken))
        #expect(try await revisions(store) == [2, 1])
        #expect(try await store.takeChanged() == [loser])
    }

    @Test func `a device whose token is dead is followed`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, device) = (fixture.base.sqlite, fixture.device)
        let profile = try says(token: "aa01")
        _ = try await store.changeRegistration(of: device, at: start) { _ in .reports(profile, confirms: true) }
        _ = try await fixture.subscribe(1)
        let wake = AppendRules(wake: WakeRequest(.background, dueAt: start))
        _ = try await store.commit([.append(fixture.base.envelope(1), wake)])
        let queue = PushQueue(app: fixture.app, environment: .production)
        let leased = try await store.leasePushes(of: queue, limit: 9, at: start, until: start.adding(seconds: 30))
        let push = try #require(leased.pushes.first)
        _ = try await store.endPushes([PushEnd(push, .tokenDead(reason: "Unregistered", since: nil), at: start)])
        #expect(try await store.registration(of: device)?.status == .suspended(.tokenDead))
        #expect(try await revisions(store) == [2])
        #expect(try await store.takeChanged() == [device])
    }

    @Test func `two changes in one commit are two hand-overs of the device`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, device) = (fixture.base.sqlite, fixture.device)
        _ = try await fixture.subscribe(1)
        try await store.group.run { db in
            let table = SubscriptionTable(db)
            try table.follow(.suspended, of: device)
            try table.follow(.resumed, of: device)
        }
        #expect(try await store.takeChanged() == [device, device])
        #expect(try await revisions(store) == [3])
    }

    @Test func `a change of the status runs as many statements as the documentation lists`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, device) = (fixture.base.sqlite, fixture.device)
        func count(_ change: StatusChange) async throws -> Int {
            let traced = try await store.tracing {
                try await store.group.run { db in try SubscriptionTable(db).follow(change, of: device) }
            }
            let words = ["subscription", "hand_over"]
            return Set(traced.statements).count { sql in words.contains { sql.contains($0) } }
        }
        for change in [StatusChange.suspended, .reasonChanged, .resumed] {
            #expect(try await count(change) == 1, "the device has no subscriptions")
        }
        for number in UInt64(1)...3 { _ = try await fixture.subscribe(number, ["a", "b"]) }
        #expect(try await count(.suspended) == 3)
        #expect(try await count(.reasonChanged) == 1)
        #expect(try await count(.resumed) == 5)
    }

    @Test func `a resumption arms subscriptions on items that have not fired`() async throws {
        let fixture = try await SubscriptionFixture(SQLiteStores.memory)
        let (store, device) = (fixture.base.sqlite, fixture.device)
        let items = ["deleted", "fired", "never", "reset"]
        for item in items { _ = try await fixture.update(item) }
        let one = try await fixture.subscribe(1, items).serial
        let ended = try await fixture.subscribe(2, items).serial
        _ = try await store.endSubscriptions([ended], of: device)
        try await store.run(
            """
            UPDATE subscription_item SET held = 1,
                last_firing = CASE item WHEN 'fired' THEN 5 WHEN 'reset' THEN -5 ELSE 0 END
            """)
        try await fixture.suspend(device)
        for item in items { _ = try await fixture.update(item, version: 2) }
        _ = try await store.deleteItem(try fixture.item("deleted"), ifIdleSince: nil)
        func rows(_ subscription: SubscriptionSerial) async throws -> [[Int64?]] {
            try await store.read { db in
                let select = """
                    SELECT version, held, last_firing FROM subscription_item WHERE subscription = ? ORDER BY item
                    """
                return try Row.fetchAll(db, sql: select, arguments: [subscription.rawValue])
                    .map { row in (0..<3).map { row[$0] as Int64? } }
            }
        }
        let before: [[Int64?]] = [[1, 1, 0], [1, 1, 5], [1, 1, 0], [1, 1, -5]]
        #expect(try await rows(one) == before, "a suspension arms nothing")
        try await fixture.resume(device)
        #expect(try await rows(one) == [[0, 0, 0], [1, 1, 5], [2, nil, 0], [2, nil, -5]])
        #expect(try await rows(ended) == before)
    }
}

extension SQLiteStore {
    /// Applies all hand-overs. Returns the devices whose subscriptions changed.
    fileprivate func takeChanged() async throws -> [DeviceSerial] {
        let handOvers = try await handOvers()
        try await apply(handOvers)
        return handOvers.compactMap { handOver in
            if case .subscriptionsChanged(of: let device)? = ItemHandOver(handOver) { device } else { nil }
        }
    }
}
