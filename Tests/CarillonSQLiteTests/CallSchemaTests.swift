import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestStores
import TestSupport
import Testing

@testable import CarillonSQLite

/// Files of earlier versions, as they were left.
@Suite(.timeLimit(.minutes(5)))
struct CallSchemaTests {
    private let start = StoreFixture.start

    private static func hex(_ value: Bytes16) -> String {
        value.bytes.map { String(format: "%02x", $0) }.joined()
    }

    @Test func `a file of version 2 keeps its watches, its callbacks, and when they are due`() async throws {
        let directory = try TemporaryDirectory.make()
        // Its ids, and the numbers of its app and its channels, are also those in the file.
        let fixture = try await StoreFixture(.memory)
        let (now, due) = (start.milliseconds, start.adding(seconds: 30).milliseconds)
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { db in
            try Schema.bring(db, to: 2)
            try db.execute(
                sql: """
                    INSERT INTO app VALUES (1, 'com.example.app', \(now));
                    INSERT INTO device VALUES (1, x'\(Self.hex(fixture.device.id.value))', 1, x'01', \(now));
                    """)
            for channel in [fixture.first, fixture.second] {
                try db.execute(
                    sql: "INSERT INTO channel VALUES (?, 1, x'\(Self.hex(channel.id.value))', NULL, NULL, \(now))",
                    arguments: [channel.serial.rawValue])
            }
            try db.execute(
                sql: """
                    INSERT INTO envelope (position, secret, device, app, channel, channel_id, kind, body, accepted_at,
                        expires_at, due_at)
                    VALUES (1, zeroblob(16), 1, 1, 1, zeroblob(16), 0, x'01', \(now), \(now + 60_000), \(now + 60_000))
                    """)
            try db.execute(
                sql: """
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
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        let device = try #require(try await store.device(fixture.device.id))
        #expect(device.serial == DeviceSerial(1))
        let watch = try #require(try await store.watch(of: fixture.first.serial))
        #expect(
            watch
                == Watch(
                    serial: WatchSerial(3), revision: 5, channel: fixture.first.serial, device: device.serial,
                    app: device.app, channelID: fixture.first.id,
                    ping: .init(address: try CallAddress("https://[::1]/ping"), intervalSeconds: 60),
                    disconnectAddress: try CallAddress("http://two.example/gone"), sealed: .init(secret: [1], token: [2]),
                    machine: PingMachine(notified: .noConnection, failures: 4),
                    lastPing: .init(at: start, failure: .noConnection, detail: "no"), dueAt: start.adding(seconds: 30),
                    createdAt: start))
        #expect(try await store.watch(of: fixture.second.serial)?.dueAt == nil)
        #expect(
            try await store.waiting(device: device.serial, after: 0, limit: 9, bytes: 9999, at: start)?.count == 1)

        let crowds = BusyPeerSets()
        let first = try await store.dueWork(at: start, besides: crowds, limit: 9)
        #expect(first.map(\.peer) == ["two.example:80"])
        #expect(try await store.dueWork(at: start.adding(milliseconds: 29_999), besides: crowds, limit: 9).count == 1)
        let later = start.adding(seconds: 30)
        let due2 = try await store.dueWork(at: later, besides: crowds, limit: 9).sorted {
            $0.kind.rawValue < $1.kind.rawValue
        }
        #expect(due2.map(\.peer) == ["[0:0:0:0:0:0:0:1]:443", "two.example:80"])
        #expect(due2.map(\.host) == ["[0:0:0:0:0:0:0:1]", "two.example"])
        let leased = try await store.leaseWork(due2, at: later, until: later.adding(seconds: 30))
        let callback = try #require(leased.items.compactMap(\.callback).first)
        #expect(callback.webhookID == "msg_8")
        #expect(callback.machine.attempts == 2)
        #expect(callback.reason == .revoked)
        let next = try await store.dueWork(at: later, besides: crowds, limit: 9)
        #expect(next.count == 1)
        #expect(next[0].device != due2[1].device, "they count as devices of their own")

        // Numbers are not used again, and the limits count the existing rows.
        var request = WatchRequest(
            channel: fixture.second.serial, ping: nil, firstDueAt: nil,
            disconnectAddress: try CallAddress("http://example.com"), sealed: .init(secret: [1], token: [2]),
            callbackID: "msg_1", renewsSecret: false, limits: WatchLimits(perDevice: 2))
        #expect(try await store.removeWatch(of: fixture.second.serial))
        guard case .put(let anew, isNew: true) = try await store.putWatch(request, at: start) else {
            throw StoreFixture.Missing()
        }
        #expect(anew.serial == WatchSerial(100))
        let third = try await StoreFixture.open(3, of: device, in: store)
        request.channel = third.serial
        #expect(try await store.putWatch(request, at: start) == .tooManyOfDevice)
        request.limits = WatchLimits(perApp: 2)
        #expect(try await store.putWatch(request, at: start) == .tooManyOfApp)
        try store.close()
        try SQLiteStore(directory: directory).close()
    }

    @Test func `a file of version 5 keeps its work, its leases and their fences`() async throws {
        let directory = try TemporaryDirectory.make()
        let fixture = try await StoreFixture(.memory)
        let now = start.milliseconds
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { db in
            try Schema.bring(db, to: 5)
            try db.execute(
                sql: """
                    INSERT INTO app (serial, id, created_at) VALUES (1, 'com.example.app', \(now));
                    INSERT INTO device (serial, id, app, credential_hash, created_at)
                        VALUES (1, x'\(Self.hex(fixture.device.id.value))', 1, x'01', \(now));
                    INSERT INTO channel VALUES (1, 1, x'\(Self.hex(fixture.first.id.value))', NULL, NULL, \(now));
                    INSERT INTO watch (serial, channel, device, app, ping_address, ping_interval, callback_id, secret, token,
                            created_at)
                        VALUES (4, 1, 1, 1, 'http://one.example/ping', 60, 'msg_4', x'01', x'02', \(now));
                    INSERT INTO disconnect_callback
                        VALUES (4, 1001, 1, 1, 'http://one.example/c', 'msg_8', x'05', x'06', 'revoked', \(now), 2);
                    INSERT INTO call_lane (serial, app, kind, peer, host, on_trial, failures, rests_until, served_at, head_at)
                        VALUES (6, 1, 0, 'one.example:80', 'one.example', 0, 2, 0, \(now), \(Int64.max)),
                            (7, 1, 1, 'one.example:80', 'one.example', 0, 2, 0, 0, \(Int64.max));
                    INSERT INTO outward_call (serial, lane, device, watch, callback, due_at, set_at, held_until, fence)
                        VALUES (10, 6, 1, 4, NULL, \(now), \(now), \(now + 30_000), 3),
                            (11, 7, 1, NULL, 4, \(now), \(now), 0, 5);
                    UPDATE sqlite_sequence SET seq = 40 WHERE name = 'outward_call';
                    """)
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        let due = try await store.dueWork(at: start, besides: BusyPeerSets(), limit: 9)
        #expect(due.map(\.serial) == [11])
        #expect(due.first?.kind == .callback && due.first?.isOnTrial == false)
        let later = start.adding(seconds: 30)
        let all = try await store.dueWork(at: later, besides: BusyPeerSets(), limit: 9).sorted { $0.serial < $1.serial }
        let leased = try await store.leaseWork(all, at: later, until: later.adding(seconds: 30)).items
        #expect(leased.map(\.lease) == [WorkLease(work: 10, fence: 4), WorkLease(work: 11, fence: 6)])
        #expect(leased.map(\.health.failures) == [2, 2])
        #expect(leased[0].watch?.serial == WatchSerial(4))
        #expect(leased[1].callback?.webhookID == "msg_8")
        // The row that it belongs to removes it, and a number is not used again.
        #expect(try await store.removeWatch(of: fixture.first.serial))
        let request = WatchRequest(
            channel: fixture.first.serial, ping: .init(address: try CallAddress("http://two.example"), intervalSeconds: 60),
            firstDueAt: start, disconnectAddress: nil, sealed: .init(secret: [1], token: [2]), callbackID: "msg_9",
            renewsSecret: false)
        _ = try await store.putWatch(request, at: start)
        let anew = try await store.dueWork(at: later.adding(seconds: 30), besides: BusyPeerSets(), limit: 9)
        #expect(anew.filter { $0.kind == .ping }.map(\.serial) == [41])
        try store.close()
    }
}
