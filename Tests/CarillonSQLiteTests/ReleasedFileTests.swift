import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestSupport
import Testing

@testable import CarillonSQLite

/// A file of version 34, the last one whose triggers counted. The tables write the same numbers from then on.
@Suite(.timeLimit(.minutes(5)))
struct ReleasedFileTests {
    private let start = StoreFixture.start
    private let app = AppSerial(1)
    private let device = DeviceSerial(1)

    /// An app with two items, three subscriptions, two attachments, and two watches whose pings are in one lane. The lists have a device
    /// that was suspended, and two subscriptions that were removed.
    private func makeFile() throws -> String {
        let directory = try TemporaryDirectory.make()
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try queue.write { [start] db in
            let now = start.milliseconds
            try Schema.bring(db, to: 34)
            try db.execute(sql: "INSERT INTO app (serial, id, created_at) VALUES (1, 'com.example.app', \(now))")
            try db.execute(
                sql: "INSERT INTO device (serial, id, app, credential_hash, created_at) VALUES (1, ?, 1, ?, \(now))",
                arguments: [Bytes16(high: 1, low: 1).data, Data(SecretHash(of: [1]).bytes)])
            try db.execute(
                sql: """
                    INSERT INTO item (app, name, mode, fields, updated_at, version)
                        VALUES (1, 'a', 0, x'', 1, 1), (1, 'b', 0, x'', 1, 1);
                    INSERT INTO condition_shape (serial, shape, source) VALUES (1, 'a', 'x'), (2, 'b', 'x');
                    INSERT INTO unfollowed (device) VALUES (1);
                    INSERT INTO unwatched (app, item, subscription, shape) VALUES (1, 'a', 8, 1), (1, 'a', 9, 2);
                    INSERT INTO channel (serial, device, id, created_at)
                        VALUES (1, 1, randomblob(16), \(now)), (2, 1, randomblob(16), \(now));
                    INSERT INTO watch_usage (app, watches) VALUES (1, 2);
                    INSERT INTO work_lane (serial, app, kind, peer, host, head_at)
                        VALUES (5, 1, 0, 'one.example:80', 'one.example', \(Timestamp.never.milliseconds));
                    """)
            for number in 1...3 {
                try db.execute(
                    sql: """
                        INSERT INTO subscription (serial, id, device, app, fields, tags, format, policy, cool_down, items, status,
                            status_at, revision, created_at)
                        VALUES (\(number), randomblob(16), 1, 1, x'', x'', '{}', 0, 0, 1, 0, 1, 1, 1);
                        INSERT INTO subscription_item (app, item, subscription, place, shape, version)
                            VALUES (1, 'a', \(number), 0, 2, 1);
                        """)
            }
            for number in 1...2 {
                try db.execute(
                    sql: """
                        INSERT INTO attachment (serial, id, app, device, allowance, length, charged, synced, is_complete,
                            lifetime, expires_at)
                        VALUES (\(number), randomblob(18), 1, 1, 'd1', \(number)0, \(number)0, \(number)0, 1, 60, \(now));
                        INSERT INTO watch (serial, channel, device, app, ping_address, ping_interval, callback_id, secret, token,
                            created_at)
                        VALUES (\(number), \(number), 1, 1, 'http://one.example', 60, 'msg_\(number)', x'01', x'02', \(now));
                        INSERT INTO leased_work (lane, device, kind, subject, due_at, set_at, held_until, fence)
                        VALUES (5, 1, 0, \(number), \(now), \(now), \(now + 30_000), 1);
                        """)
            }
        }
        try queue.close()
        return directory
    }

    /// Expects numbers of items, subscriptions, bytes of attachments, pieces of work and watches, as counted and as there are rows.
    private func expect(_ expected: [Int64], _ store: SQLiteStore) async throws {
        let counted = try await store.numbers(
            """
            SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'items'
            UNION ALL SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'subscriptions'
            UNION ALL SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'attachment_bytes:'
            UNION ALL SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'attachment_bytes:d1'
            UNION ALL SELECT coalesce(sum(size), 0) FROM work_lane
            UNION ALL SELECT coalesce(sum(value), 0) FROM counter WHERE name = 'watches'
            """)
        #expect(counted == expected)
        let rows = try await store.numbers(
            """
            SELECT count(*) FROM item UNION ALL SELECT count(*) FROM subscription
            UNION ALL SELECT coalesce(sum(charged), 0) FROM attachment
            UNION ALL SELECT coalesce(sum(charged), 0) FROM attachment
            UNION ALL SELECT count(*) FROM leased_work UNION ALL SELECT count(*) FROM watch
            """)
        #expect(rows == expected)
    }

    @Test func `the numbers of a file of version 34 follow its rows`() async throws {
        let store = try SQLiteStore(directory: makeFile())
        try await expect([2, 3, 30, 30, 2, 2], store)
        #expect(try await store.numbers("SELECT serial FROM condition_shape") == [2])
        #expect(try await store.handOvers().isEmpty)

        let item = ItemKey(app: app, name: try #require(ItemName("a")))
        #expect(try await store.deleteItem(item, ifIdleSince: nil))
        try await expect([1, 3, 30, 30, 2, 2], store)
        let ended = [EndedSubscription(serial: SubscriptionSerial(1), device: device)]
        #expect(try await store.endSubscriptions(ended.map(\.serial), of: device) == 1)
        try await store.removeSubscriptions(ended, at: start)
        try await expect([1, 2, 30, 30, 2, 2], store)
        #expect(try await store.removeAttachment(AttachmentSerial(1)))
        try await expect([1, 2, 20, 20, 2, 2], store)
        #expect(try await store.removeWatch(of: ChannelSerial(1)))
        try await expect([1, 2, 20, 20, 1, 1], store)

        _ = try await store.deleteDevice(device, at: start)
        while try await !store.removeEndedAttachments(at: start, limit: 9).isDone {}
        try await expect([1, 0, 0, 0, 0, 0], store)
        #expect(try await store.rowCount(of: "work_lane") == 0)
        let handOvers = try await store.handOvers()
        #expect(handOvers.count == 3)
        try await store.apply(handOvers)
        #expect(try await store.rowCount(of: "condition_shape") == 0)
        try store.close()
    }
}
