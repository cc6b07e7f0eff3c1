import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestStores
import TestSupport
import Testing

@testable import CarillonSQLite

/// The counts of watches and callbacks beside their rows, and the statements that change them.
@Suite(.timeLimit(.minutes(5)))
struct WatchRowTests {
    private let start = WatchFixture.start

    /// Watches and callbacks of each app, as they are counted in `counter` and as there are rows.
    private func usage(_ store: SQLiteStore) async throws -> (counted: [[Int64]], rows: [[Int64]]) {
        try await store.read { db in
            func numbers(_ sql: String) throws -> [[Int64]] {
                try Row.fetchAll(db, sql: sql).map { row -> [Int64] in [row[0], row[1], row[2]] }
            }
            let counted = try numbers(
                """
                SELECT app, sum(CASE name WHEN 'watches' THEN value ELSE 0 END),
                    sum(CASE name WHEN 'callbacks' THEN value ELSE 0 END)
                FROM counter WHERE name IN ('watches', 'callbacks') GROUP BY app ORDER BY app
                """)
            let rows = try numbers(
                """
                SELECT app, sum(watch), sum(callback) FROM (
                    SELECT app, 1 AS watch, 0 AS callback FROM watch
                    UNION ALL SELECT app, 0, 1 FROM disconnect_callback
                ) AS owned GROUP BY app ORDER BY app
                """)
            return (counted, rows)
        }
    }

    private func expectCounts(_ fixture: WatchFixture, _ watches: Int64, _ callbacks: Int64) async throws {
        let (counted, rows) = try await usage(fixture.sqlite)
        #expect(counted == rows)
        #expect(counted.map { Array($0.dropFirst()) } == (watches + callbacks == 0 ? [] : [[watches, callbacks]]))
        #expect(try await wrongWork(fixture.sqlite) == [0, 0])
    }

    /// The number of works without their subject, of pings and callbacks without work, and of queues that do not match their
    /// work.
    private func wrongWork(_ store: SQLiteStore) async throws -> [Int64] {
        try await store.read { db in
            let work = try Int64.fetchOne(
                db,
                sql: """
                    SELECT (SELECT count(*) FROM leased_work AS work WHERE
                            NOT EXISTS (SELECT 1 FROM watch WHERE work.kind = 0 AND watch.serial = work.subject
                                AND watch.ping_address NOT NULL)
                            AND NOT EXISTS (SELECT 1 FROM disconnect_callback AS call
                                WHERE work.kind = 1 AND call.serial = work.subject))
                        + (SELECT count(*) FROM watch WHERE ping_address NOT NULL
                            AND NOT EXISTS (SELECT 1 FROM leased_work WHERE kind = 0 AND subject = watch.serial))
                        + (SELECT count(*) FROM disconnect_callback AS call
                            WHERE NOT EXISTS (SELECT 1 FROM leased_work WHERE kind = 1 AND subject = call.serial))
                    """)
            let queues = try Int64.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM work_lane WHERE size = 0
                        OR size <> (SELECT count(*) FROM leased_work WHERE lane = work_lane.serial)
                        OR head_at <> (SELECT min(ready_at) FROM leased_work WHERE lane = work_lane.serial)
                    """)
            return [work ?? -1, queues ?? -1]
        }
    }

    @Test func `counts follow their rows, however a watch ends`() async throws {
        let fixture = try await WatchFixture(.memory, callbacks: CallbackLimits(perApp: 10, perPeer: 2))
        let (store, device) = (fixture.sqlite, fixture.base.device)
        func watched(_ number: UInt64, gone: String? = "http://gone.example") async throws -> PushChannel {
            let channel = try await StoreFixture.open(number, of: device, in: store)
            _ = try await fixture.put(fixture.request(on: channel, gone: gone, id: "msg_\(number)"))
            return channel
        }
        let closed = try await watched(11)
        let revoked = try await watched(12)
        let removed = try await watched(13)
        _ = try await watched(14)
        _ = try await watched(15, gone: nil)
        try await expectCounts(fixture, 5, 0)
        _ = try await fixture.put(fixture.request(on: removed, every: 90))
        try await expectCounts(fixture, 5, 0)
        _ = try await store.closeChannel(closed.id, device: device.serial, at: start)
        try await expectCounts(fixture, 4, 1)
        _ = try await store.commit([.append(fixture.news(1, .channelClosed, on: revoked), AppendRules())])
        try await expectCounts(fixture, 3, 2)
        #expect(try await store.removeWatch(of: removed.serial))
        try await expectCounts(fixture, 2, 2)
        // The third callback for one peer removes the first.
        _ = try await store.deleteDevice(device.serial, at: start)
        try await expectCounts(fixture, 0, 2)
        let calls = try await fixture.drain(at: WatchFixture.aMonth)
        #expect(calls.compactMap { $0.callback?.webhookID }.sorted() == ["msg_12", "msg_14"])
        try await expectCounts(fixture, 0, 0)
    }

    @Test func `counts follow their rows when a user or an app ends`() async throws {
        let fixture = try await WatchFixture(.memory)
        let (store, device) = (fixture.sqlite, fixture.base.device)
        func says(_ user: UserClaim) async throws {
            let changed = try await store.changeRegistration(of: device.serial, at: start) { current in
                .reports(current.profile, confirms: false, user: user)
            }
            _ = try #require(changed).get()
        }
        _ = try await fixture.put(fixture.request(gone: "http://gone.example", id: "msg_1"))
        let user = try #require(UserID("ada"))
        try await says(.signedIn(user))
        let watched: [(number: UInt64, gone: String?)] = [(11, "http://gone.example"), (12, nil)]
        for (number, gone) in watched {
            let channel = try await StoreFixture.open(number, of: device, in: store)
            _ = try await fixture.put(fixture.request(on: channel, gone: gone, id: "msg_\(number)"))
        }
        try await expectCounts(fixture, 3, 0)
        try await says(.signedOut)
        try await expectCounts(fixture, 1, 1)
        _ = try await store.deleteApp(device.appID, at: start)
        try await expectCounts(fixture, 1, 1)
        while try await !store.continueDeletions(at: start, limit: 500).isDone {}
        try await expectCounts(fixture, 0, 2)
        let calls = try await fixture.drain(at: start)
        #expect(calls.compactMap { $0.callback?.webhookID }.sorted() == ["msg_1", "msg_11"])
        try await expectCounts(fixture, 0, 0)
    }

    @Test func `counts follow their rows when other work of the commit fails`() async throws {
        let fixture = try await WatchFixture(.memory)
        let (store, device) = (fixture.sqlite, fixture.base.device)
        let (first, second) = (fixture.base.first, fixture.base.second)
        let third = try await StoreFixture.open(11, of: device, in: store)
        let (now, request) = (start, try fixture.request(on: third))
        for channel in [first, second] {
            _ = try await fixture.put(fixture.request(on: channel, gone: "http://gone.example"))
        }
        let gate = Gate()
        async let before: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await store.closeChannel(first.id, device: device.serial, at: now) },
            {
                try await store.group.run { db in
                    _ = try WatchTransaction(db).remove(of: second.serial)
                    throw StoreFault(.full, "its own")
                }
            },
            { _ = try await store.putWatch(request, at: now) },
        ]
        let results = await together(works) { gate.open() }
        try await before
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        try await expectCounts(fixture, 2, 1)
    }

    @Test func `a file of version 31 keeps its counts`() async throws {
        let directory = try TemporaryDirectory.make()
        let now = start.milliseconds
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { db in
            try Schema.bring(db, to: 5)
            try db.execute(
                sql: """
                    INSERT INTO app (serial, id, created_at) VALUES (1, 'com.example.app', \(now));
                    INSERT INTO device (serial, id, app, credential_hash, created_at)
                        VALUES (1, zeroblob(16), 1, x'01', \(now));
                    INSERT INTO channel VALUES (1, 1, zeroblob(16), NULL, NULL, \(now)),
                        (2, 1, x'00112233445566778899aabbccddeeff', NULL, NULL, \(now));
                    """)
            try Schema.bring(db, to: 31)
            try db.execute(
                sql: """
                    INSERT INTO watch (channel, device, app, ping_address, ping_interval, callback_id, secret, token, created_at)
                        VALUES (1, 1, 1, 'http://one.example', 60, 'msg_1', x'01', x'02', \(now)),
                            (2, 1, 1, NULL, NULL, 'msg_2', x'01', x'02', \(now));
                    INSERT INTO disconnect_callback (channel, device, app, address, webhook_id, secret, token, reason, ended_at)
                        VALUES (9, 1, 1, 'http://one.example', 'msg_9', x'01', x'02', 'revoked', \(now));
                    """)
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        let before = try await usage(store)
        #expect(before.counted == [[1, 2, 1]])
        #expect(before.rows == before.counted)
        #expect(try await store.removeWatch(of: ChannelSerial(1)))
        _ = try await store.deleteDevice(DeviceSerial(1), at: start)
        let after = try await usage(store)
        #expect(after.counted == [[1, 0, 1]])
        #expect(after.rows == after.counted)
        try store.close()
    }

    @Test func `overdue pings are spread in slices`() async throws {
        let fixture = try await WatchFixture(.memory)
        let (store, device) = (fixture.sqlite, fixture.base.device)
        let now = start.adding(seconds: 3600)
        var channels: [PushChannel] = []
        for number in UInt64(11)...17 {
            let channel = try await StoreFixture.open(number, of: device, in: store)
            _ = try await fixture.put(fixture.request(on: channel, due: number == 14 ? now : start))
            channels.append(channel)
        }
        try await store.group.run { db in try WatchTransaction(db).spreadOverduePings(in: .all, at: now, atOnce: 2) }
        for (place, channel) in channels.enumerated() {
            let due = try #require(try await store.watch(of: channel.serial)?.dueAt)
            #expect(place == 3 ? due == now : due >= now && due < now.adding(seconds: 60))
        }
    }

    // MARK: Queues

    @Test func `queues follow their work`() async throws {
        let fixture = try await WatchFixture(.memory)
        let (store, device) = (fixture.sqlite, fixture.base.device)
        func expectQueues(_ sizes: [Int64]) async throws {
            #expect(try await wrongWork(store) == [0, 0])
            let found = try await store.read { db in
                try Int64.fetchAll(db, sql: "SELECT size FROM work_lane ORDER BY peer, kind")
            }
            #expect(found == sizes)
        }
        let third = try await StoreFixture.open(11, of: device, in: store)
        for channel in [fixture.base.first, fixture.base.second, third] {
            _ = try await fixture.put(fixture.request(on: channel, ping: "http://a.example", due: start.adding(seconds: 9)))
        }
        try await expectQueues([3])
        _ = try await fixture.put(fixture.request(on: third, ping: "http://a.example", due: start))
        try await expectQueues([3])
        _ = try await fixture.put(fixture.request(on: third, ping: "http://b.example", due: start))
        try await expectQueues([2, 1])
        _ = try await fixture.put(
            fixture.request(on: third, ping: "http://c.example", gone: "http://a.example", id: "msg_3"))
        try await expectQueues([2, 1])

        let later = start.adding(seconds: 10)
        let calls = try await fixture.lease(at: later)
        #expect(calls.count == 2)
        try await expectQueues([2, 1])
        for call in calls { _ = try await store.record(try fixture.record(call, due: later.adding(seconds: 60), at: later)) }
        try await expectQueues([2, 1])
        try await store.spreadOverduePings(at: start.adding(seconds: 3600))
        try await expectQueues([2, 1])
        _ = try await fixture.lease(at: start.adding(seconds: 7200))
        try await store.bringBackWork(at: start)
        try await expectQueues([2, 1])

        _ = try await fixture.put(fixture.request(on: fixture.base.first, ping: nil))
        try await expectQueues([1, 1])
        _ = try await store.closeChannel(third.id, device: device.serial, at: start)
        try await expectQueues([1, 1])
        #expect(try await store.removeWatch(of: fixture.base.second.serial))
        try await expectQueues([1])
        _ = try await fixture.drain(at: WatchFixture.aMonth)
        try await expectQueues([])
    }

    @Test func `queues follow their work when other work of the commit fails`() async throws {
        let fixture = try await WatchFixture(.memory)
        let (store, device) = (fixture.sqlite, fixture.base.device)
        let (first, second) = (fixture.base.first, fixture.base.second)
        let third = try await StoreFixture.open(11, of: device, in: store)
        for channel in [first, second] { _ = try await fixture.put(fixture.request(on: channel, ping: "http://a.example")) }
        let moved = try #require(try await store.watch(of: first.serial)).serial
        let removed = try #require(try await store.watch(of: second.serial)).serial
        let now = start
        let requests = [
            try fixture.request(on: third, ping: "http://a.example"),
            try fixture.request(on: second, ping: "http://b.example"),
        ]
        let gate = Gate()
        async let before: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await store.putWatch(requests[0], at: now) },
            {
                try await store.group.run { db in
                    let queues = WorkQueues(db)
                    func work(_ subject: Int64, _ peer: String) -> WorkQueues.NewWork {
                        WorkQueues.NewWork(
                            kind: .ping, subject: subject, app: device.app.rawValue, device: device.serial.rawValue,
                            peer: peer, dueAt: now)
                    }
                    try queues.add(work(99, "c.example:80"), at: now)
                    try queues.move(work(moved.rawValue, "d.example:80"), at: now)
                    try queues.remove(.ping, of: removed.rawValue)
                    throw StoreFault(.full, "its own")
                }
            },
            { _ = try await store.putWatch(requests[1], at: now) },
        ]
        let results = await together(works) { gate.open() }
        try await before
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        #expect(try await wrongWork(store) == [0, 0])
        #expect(try await store.numbers("SELECT size FROM work_lane ORDER BY peer, kind") == [2, 1])
    }

    // MARK: Statements

    private static let tables = ["watch", "disconnect_callback", "leased_work", "work_lane"]

    /// The statements on the tables of watches and their work. A statement counts once.
    private func statements(of store: SQLiteStore, in work: () async throws -> Void) async throws -> Int {
        let seen = Set(try await store.tracing(work).statements)
        return seen.count { sql in Self.tables.contains { sql.contains($0) } }
    }

    @Test func `calls run as many statements as the documentation lists`() async throws {
        let fixture = try await WatchFixture(.memory, callbacks: CallbackLimits(perApp: 3, perPeer: 2))
        let (store, device) = (fixture.sqlite, fixture.base.device)
        let (first, second) = (fixture.base.first, fixture.base.second)
        func run(_ work: () async throws -> Void) async throws -> Int { try await statements(of: store, in: work) }
        func put(_ request: WatchRequest) async throws -> Int { try await run { _ = try await fixture.put(request) } }
        func close(_ channel: PushChannel) async throws -> Int {
            try await run { _ = try await store.closeChannel(channel.id, device: device.serial, at: start) }
        }
        #expect(try await put(fixture.request()) == 8)
        #expect(try await put(fixture.request(on: second)) == 7)
        #expect(try await put(fixture.request(every: 90)) == 5)
        #expect(try await put(fixture.request(ping: nil)) == 5)
        #expect(try await put(fixture.request(ping: nil)) == 2)
        let removal = try await run { _ = try await store.removeWatch(of: first.serial) }
        #expect(removal == 3)
        #expect(try await put(fixture.request(ping: nil)) == 4)

        let call = try #require(try await fixture.lease(at: start).first)
        let record = try fixture.record(call, notified: .noConnection, due: start)
        let news = fixture.news(1, .pingFailed(.noConnection), on: second)
        let notified = try await run { _ = try await fixture.notify(news, .pinged(record)) }
        #expect(notified == 5)
        let again = try #require(try await fixture.lease(at: start).first)
        let answer = try fixture.record(again, due: start)
        let recorded = try await run { _ = try await store.record(answer) }
        #expect(recorded == 5)
        let spread = try await run { try await store.spreadOverduePings(at: start.adding(seconds: 9)) }
        #expect(spread == 3)

        #expect(try await close(first) == 4)
        _ = try await put(fixture.request(on: second, ping: nil, gone: "http://gone.example"))
        #expect(try await close(second) == 10)
        // The third and fourth callback for one peer are beyond its limit. The last one is for another peer.
        let ends: [(number: UInt64, host: String, count: Int)] = [
            (number: 3, host: "gone", count: 9), (number: 4, host: "gone", count: 12), (number: 5, host: "gone", count: 12),
            (number: 6, host: "other", count: 10),
        ]
        for (number, host, count) in ends {
            let channel = try await StoreFixture.open(number, of: device, in: store)
            _ = try await put(
                fixture.request(on: channel, ping: nil, gone: "http://\(host).example", id: "msg_\(number)"))
            #expect(try await close(channel) == count)
        }
        let bare = try await StoreFixture.open(7, of: device, in: store)
        #expect(try await close(bare) == 1)

        let callback = try #require(try await fixture.lease(at: start).first)
        let subject = try #require(callback.callback)
        let end = fixture.end(callback)
        let retried = try await run { _ = try await store.record(.retry(at: start), of: subject, end: end) }
        #expect(retried == 5)
        let next = try #require(try await fixture.lease(at: start).first)
        let last = try #require(next.callback)
        let delivered = try await run { _ = try await store.record(.done, of: last, end: fixture.end(next)) }
        // Another callback for the peer is left in the queue.
        #expect(delivered == 7)
    }
}
