import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestSupport
import Testing

@testable import CarillonSQLite

/// The lists of a file of version 37 that hand-overs replaced.
@Suite(.timeLimit(.minutes(5)))
struct HandOverStepTests {
    private let start = StoreFixture.start

    /// A device that was suspended, its subscription, and shapes of which one is used. Subscriptions that were removed are still listed.
    private func makeFile() throws -> String {
        let directory = try TemporaryDirectory.make()
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try queue.write { [start] db in
            let now = start.milliseconds
            try Schema.bring(db, to: 31)
            try db.execute(sql: "INSERT INTO app (serial, id, created_at) VALUES (1, 'com.example.app', \(now))")
            try db.execute(
                sql: "INSERT INTO device (serial, id, app, credential_hash, created_at) VALUES (1, ?, 1, ?, \(now))",
                arguments: [Bytes16(high: 1, low: 1).data, Data(SecretHash(of: [1]).bytes)])
            try db.execute(
                sql: """
                    INSERT INTO subscription (serial, id, device, app, fields, tags, format, policy, cool_down, items, status,
                        status_at, revision, created_at)
                    VALUES (4, randomblob(16), 1, 1, x'', x'', '{}', 0, 0, 1, 0, 1, 1, 1);
                    INSERT INTO condition_shape (serial, shape, source) VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'x');
                    INSERT INTO subscription_item (app, item, subscription, place, shape, version)
                        VALUES (1, 'é b', 4, 0, 2, 0);
                    INSERT INTO unwatched (app, item, subscription, shape)
                        VALUES (1, 'a', 2, 1), (1, 'a', 3, 2), (1, 'b', 3, NULL);
                    INSERT INTO unfollowed (device) VALUES (1);
                    """)
            try Schema.bring(db, to: 37)
        }
        try queue.close()
        return directory
    }

    @Test func `shapes of removed subscriptions are gone, and a removal is handed over from then on`() async throws {
        let store = try SQLiteStore(directory: makeFile())
        #expect(try await store.handOvers(in: .all, limit: 9).isEmpty)
        #expect(try await store.numbers("SELECT serial FROM condition_shape ORDER BY serial") == [2, 3])
        let (device, subscription) = (DeviceSerial(1), SubscriptionSerial(4))
        #expect(try await store.endSubscriptions([subscription], of: device) == 1)
        try await store.removeSubscriptions([EndedSubscription(serial: subscription, device: device)], at: start)
        let item = ItemKey(app: AppSerial(1), name: try #require(ItemName("é b")))
        let handOvers = try await store.handOvers(in: .all, limit: 9)
        let handOver = try #require(handOvers.first)
        #expect(handOvers.count == 1 && handOver.shard == Shard(of: item.app, item: item.name.text))
        #expect(ItemHandOver(handOver) == .subscriptionRemoved(subscription, from: item, shape: 2))
        try store.close()
    }

    @Test func `a shape is removed with its last subscription, once`() async throws {
        let store = try SQLiteStore(directory: makeFile())
        let (device, subscription) = (DeviceSerial(1), SubscriptionSerial(4))
        _ = try await store.endSubscriptions([subscription], of: device)
        try await store.removeSubscriptions([EndedSubscription(serial: subscription, device: device)], at: start)
        let applied = try await store.handOvers(in: .all, limit: 9).map { AppliedHandOver($0) }
        #expect(applied.map(\.change) == [.removeShape(2)])
        try await store.run("UPDATE hand_over SET number = number + 1")
        try await store.applyHandOvers(applied)
        #expect(try await store.numbers("SELECT serial FROM condition_shape ORDER BY serial") == [2, 3], "it is another")
        try await store.run("UPDATE hand_over SET number = number - 1")
        try await store.applyHandOvers(applied)
        #expect(try await store.numbers("SELECT serial FROM condition_shape ORDER BY serial") == [3])
        #expect(try await store.rowCount(of: "hand_over") == 0)
        try store.close()
    }
}
