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

    /// An app with two items, three subscriptions, two attachments, and two watches whose pings are in one queue. The lists
    /// contain a device that was suspended, and two subscriptions that were removed.
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

    @Test func `the device of a file of version 34 and a new one have messages, sessions and outcomes`() async throws {
        let directory = try makeFile()
        let store = try SQLiteStore(directory: directory)
        let former = try #require(try await store.device(device))
        #expect(former.id == DeviceID(Bytes16(high: 1, low: 1)) && Shard(of: former.id) != Shard(of: former.serial))
        let proposed = DeviceID(Bytes16(high: 2, low: 5))
        let inserted = try await store.insertDevice(
            NewDevice(proposed, app: former.appID), at: start, credential: .fixed(SecretHash(of: [2])))
        guard case .stored(let new, _) = inserted else { throw StoreFixture.Missing() }
        #expect(new.serial == DeviceSerial(Shard.firstWithShard + 5) && new.id == proposed)
        let formerChannels = try await store.channels(device: device)
        #expect(formerChannels.count == 2)
        let newChannel = try await StoreFixture.open(3, of: new, in: store)
        let world = try await DeliveryWorld(
            StoreFixture(store, device: former, first: formerChannels[0], second: formerChannels[1]))
        var kept: [MessageID] = []
        for (device, channel) in [(former, formerChannels[0]), (new, newChannel)] {
            let stored = try await world.publisher.publish(world.request(), to: channel)
            #expect(stored.outcome == nil && Shard(of: stored.id.position) == Shard(of: device.serial))
            let name = DeviceName.id(device.id, credential: device.credentialHash)
            let arrival = try await store.arrival(of: name, PageRequest(after: 0, limit: 9, bytes: 9999), at: start)
            #expect(arrival?.device == device && arrival?.envelopes?.map(\.id) == [stored.id])
            let session = WindowedSession(device: device.serial, inbox: world.inbox, clock: world.clock)
            world.sessions.join(session, device: device.serial)
            try await session.load()
            #expect(session.takeGiven().map(\.id) == [stored.id])
            world.inbox.finish(stored.id, device: device.serial, .acknowledged, code: nil)
            session.finished([stored.id])
            #expect(try await world.outcome(stored.id) == .acknowledged)
            let live = try await world.publisher.publish(world.request(ttl: 0), to: channel)
            #expect(live.outcome == nil)
            #expect(session.takeGiven().map(\.id) == [live.id])
            world.inbox.finish(live.id, device: device.serial, .acknowledged, code: nil)
            #expect(try await world.outcome(live.id) == .acknowledged)
            world.sessions.leave(session, device: device.serial)
            await world.writer.flush()
            kept.append(try await world.publisher.publish(world.request(), to: channel).id)
        }
        try store.close()
        let again = try SQLiteStore(directory: directory)
        for (device, id) in zip([former, new], kept) {
            #expect(try await again.device(device.id) == device)
            let waiting = try await again.waiting(device: device.serial, after: 0, limit: 9, bytes: 9999, at: start)
            #expect(waiting?.map(\.id) == [id])
            #expect(try await again.deleteDevice(device.serial, at: start) != nil)
            #expect(try await again.waiting(device: device.serial, after: 0, limit: 9, bytes: 9999, at: start) == nil)
        }
        try again.close()
    }
}
