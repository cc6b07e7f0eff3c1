import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation
import GRDB
import Testing

/// Files of earlier versions, as they were left.
@Suite(.timeLimit(.minutes(1)))
struct CallSchemaTests {
    private let start = StoreFixture.start

    /// What version 2 had in the place of the tables of calls, and without what else version 3 added.
    private static let version2 = """
        DROP TABLE server; DROP TABLE registration; DROP INDEX device_of_key; ALTER TABLE device DROP COLUMN access_key;
        DROP INDEX envelope_final; DROP INDEX idempotency_of_device; ALTER TABLE idempotency DROP COLUMN device;
        DROP INDEX device_anonymous; ALTER TABLE device DROP COLUMN seen_at; ALTER TABLE device DROP COLUMN is_anonymous;
        DROP TABLE outward_call; DROP TABLE call_lane; DROP TABLE disconnect_callback; DROP TABLE watch; DROP TABLE watch_usage;
        CREATE TABLE peer (
            serial INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, due_at INTEGER NOT NULL,
            leased_until INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX peer_due ON peer (due_at);
        CREATE TABLE watch (
            serial INTEGER PRIMARY KEY AUTOINCREMENT, channel INTEGER NOT NULL UNIQUE REFERENCES channel ON DELETE CASCADE,
            revision INTEGER NOT NULL DEFAULT 1, ping_address TEXT, ping_interval INTEGER,
            ping_peer INTEGER REFERENCES peer, due_at INTEGER, disconnect_address TEXT, callback_id TEXT NOT NULL,
            secret BLOB NOT NULL, token BLOB NOT NULL, told INTEGER, failures INTEGER NOT NULL DEFAULT 0, last_at INTEGER,
            last_code INTEGER, last_detail TEXT, created_at INTEGER NOT NULL,
            CHECK ((ping_address IS NULL) = (due_at IS NULL)), CHECK ((ping_address IS NULL) = (ping_peer IS NULL)),
            CHECK ((ping_address IS NULL) = (ping_interval IS NULL))
        ) STRICT;
        CREATE INDEX watch_due ON watch (ping_peer, due_at);
        CREATE TABLE disconnect_callback (
            serial INTEGER PRIMARY KEY AUTOINCREMENT, channel INTEGER NOT NULL, address TEXT NOT NULL,
            peer INTEGER NOT NULL REFERENCES peer, webhook_id TEXT NOT NULL UNIQUE, secret BLOB NOT NULL,
            token BLOB NOT NULL, reason TEXT NOT NULL, ended_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX disconnect_callback_due ON disconnect_callback (peer, due_at);
        PRAGMA user_version = 2;
        """

    private func write(_ directory: String, _ sql: String) throws {
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try queue.writeWithoutTransaction { db in try db.execute(sql: sql) }
        try queue.close()
    }

    @Test func `a file of version 2 keeps its watches, its callbacks, and when they are due`() async throws {
        let directory = try TemporaryDirectory.make()
        let fixture = try await StoreFixture(try SQLiteStore(directory: directory))
        _ = try await fixture.append(fixture.envelope(1))
        try fixture.store.close()
        let (now, due) = (start.milliseconds, start.adding(seconds: 30).milliseconds)
        try write(
            directory,
            Self.version2 + """
                INSERT INTO peer VALUES (1, '[0:0:0:0:0:0:0:1]:443', \(due), \(due), 7), (2, 'two.example:80', \(now), 0, 0);
                INSERT INTO watch VALUES
                    (3, \(fixture.first.serial.rawValue), 5, 'https://[::1]/ping', 60, 1, \(due), 'http://two.example/gone',
                        'msg_3', x'01', x'02', 601, 4, \(now), 601, 'no', \(now)),
                    (5, \(fixture.second.serial.rawValue), 1, NULL, NULL, NULL, NULL, 'http://two.example/b', 'msg_5', x'03',
                        x'04', NULL, 0, NULL, NULL, NULL, \(now));
                UPDATE sqlite_sequence SET seq = 99 WHERE name = 'watch';
                INSERT INTO disconnect_callback VALUES
                    (8, 1001, 'http://two.example/c', 2, 'msg_8', x'05', x'06', 'revoked', \(now), 2, \(now)),
                    (9, 1002, 'http://two.example/d', 2, 'msg_9', x'07', x'08', 'unregistered', \(now), 0, \(now + 1));
                UPDATE sqlite_sequence SET seq = 77 WHERE name = 'disconnect_callback';
                """)
        let store = try SQLiteStore(directory: directory)
        let watch = try #require(try await store.watch(of: fixture.first.serial))
        #expect(
            watch
                == Watch(
                    serial: WatchSerial(3), revision: 5, channel: fixture.first.serial, device: fixture.device.serial,
                    app: fixture.device.app, channelID: fixture.first.id,
                    ping: .init(address: try CallAddress("https://[::1]/ping"), intervalSeconds: 60),
                    disconnectAddress: try CallAddress("http://two.example/gone"), sealed: .init(secret: [1], token: [2]),
                    machine: PingMachine(told: .noConnection, failures: 4),
                    lastPing: .init(at: start, failure: .noConnection, detail: "no"), dueAt: start.adding(seconds: 30),
                    createdAt: start))
        #expect(try await store.watch(of: fixture.second.serial)?.dueAt == nil)
        #expect(
            try await store.waiting(device: fixture.device.serial, after: 0, limit: 9, bytes: 9999, at: start)?.count == 1)

        let crowds = CallCrowds()
        let first = try await store.dueCalls(at: start, besides: crowds, limit: 9)
        #expect(first.map(\.peer) == ["two.example:80"])
        #expect(try await store.dueCalls(at: start.adding(milliseconds: 29_999), besides: crowds, limit: 9).count == 1)
        let later = start.adding(seconds: 30)
        let due2 = try await store.dueCalls(at: later, besides: crowds, limit: 9).sorted {
            $0.kind.rawValue < $1.kind.rawValue
        }
        #expect(due2.map(\.peer) == ["[0:0:0:0:0:0:0:1]:443", "two.example:80"])
        #expect(due2.map(\.host) == ["[0:0:0:0:0:0:0:1]", "two.example"])
        let leased = try await store.leaseCalls(due2, at: later, until: later.adding(seconds: 30))
        let callback = try #require(leased.calls.compactMap(\.callback).first)
        #expect(callback.webhookID == "msg_8")
        #expect(callback.machine.attempts == 2)
        #expect(callback.reason == .revoked)
        let next = try await store.dueCalls(at: later, besides: crowds, limit: 9)
        #expect(next.count == 1)
        #expect(next[0].device != due2[1].device, "they count as devices of their own")

        // Numbers are not used again, and the bounds count what was there.
        var wish = WatchWish(
            channel: fixture.second.serial, ping: nil, firstDueAt: nil,
            disconnectAddress: try CallAddress("http://example.com"), sealed: .init(secret: [1], token: [2]),
            callbackID: "msg_1", renewsSecret: false, limits: WatchLimits(perDevice: 2))
        #expect(try await store.removeWatch(of: fixture.second.serial))
        guard case .put(let anew, isNew: true) = try await store.putWatch(wish, at: start) else {
            throw StoreFixture.Missing()
        }
        #expect(anew.serial == WatchSerial(100))
        let third = try await StoreFixture.open(3, of: fixture.device, in: store)
        wish.channel = third.serial
        #expect(try await store.putWatch(wish, at: start) == .tooManyOfDevice)
        wish.limits = WatchLimits(perApp: 2)
        #expect(try await store.putWatch(wish, at: start) == .tooManyOfApp)
        try store.close()
        try SQLiteStore(directory: directory).close()
    }
}
