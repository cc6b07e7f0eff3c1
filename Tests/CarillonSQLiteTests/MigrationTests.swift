import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestSupport
import Testing

@testable import CarillonSQLite

/// A file of an earlier version is opened with everything in it.
@Suite(.timeLimit(.minutes(5)))
struct MigrationTests {
    private let start = StoreFixture.start
    private let key = IdempotencyClaim(
        keyHash: [1, 2, 3], fingerprint: [4, 5, 6], validUntil: StoreFixture.start.adding(seconds: 86_400))

    /// A file as the program of that version wrote it: one app, one device, one channel; one message waits, one was
    /// acknowledged, and one was sent with a key.
    private func makeFile(version: Int) throws -> String {
        let directory = try TemporaryDirectory.make()
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try queue.write { db in
            // Version 5 stores the states in a form of its own, which it derives from that of version 4.
            try Schema.bring(db, to: min(version, 4))
            let now = start.milliseconds
            try db.execute(sql: "INSERT INTO app VALUES (1, 'com.example.app', \(now))")
            try db.execute(
                sql: "INSERT INTO device (serial, id, app, credential_hash, created_at) VALUES (1, ?, 1, ?, \(now))",
                arguments: [Bytes16(high: 1, low: 1).data, Data(SecretHash(of: [1]).bytes)])
            try db.execute(
                sql: "INSERT INTO channel VALUES (1, 1, ?, 'news', NULL, \(now))",
                arguments: [Bytes16(high: 7, low: 1).data])
            if version < 4 { try fillInboxes1(in: db) } else { try fillInboxes4(in: db) }
            try Schema.bring(db, to: version)
            #expect(try Int.fetchOne(db, sql: "PRAGMA user_version") == version)
        }
        try queue.close()
        return directory
    }

    private func fillInboxes1(in db: Database) throws {
        let now = start.milliseconds
        for (position, outcome) in [(1, nil), (2, "acknowledged"), (3, nil)] as [(UInt64, String?)] {
            try db.execute(
                sql: """
                    INSERT INTO envelope (position, secret, device, app, channel, channel_id, kind, coding, body,
                        accepted_at, expires_at, outcome, final_at, due_at)
                    VALUES (?, ?, 1, 1, 1, ?, 0, 'identity', ?, \(now), ?, ?, ?, ?)
                    """,
                arguments: [
                    position, Bytes16(high: 5, low: position).data, Bytes16(high: 7, low: 1).data,
                    outcome == nil ? Data("hello".utf8) : nil, now + 60_000, outcome, outcome.map { _ in now },
                    now + 60_000,
                ])
        }
        try db.execute(
            sql: """
                INSERT INTO idempotency (channel, key_hash, fingerprint, position, secret, accepted_at, expires_at,
                    valid_until) VALUES (1, ?, ?, 3, ?, \(now), \(now + 60_000), \(now + 86_400_000))
                """,
            arguments: [Data(key.keyHash), Data(key.fingerprint), Bytes16(high: 5, low: 3).data])
    }

    private func fillInboxes4(in db: Database) throws {
        let now = start.milliseconds
        for position in [1, 3] as [UInt64] {
            try db.execute(
                sql: """
                    INSERT INTO envelope (position, secret, device, app, origin_kind, origin, origin_id, kind, size,
                        accepted_at, expires_at, coding, body)
                    VALUES (?, ?, 1, 1, 0, 1, ?, 0, 133, \(now), \(now + 60_000), 'identity', ?)
                    """,
                arguments: [
                    position, Bytes16(high: 5, low: position).data, Bytes16(high: 7, low: 1).data, Data("hello".utf8),
                ])
            try db.execute(sql: "INSERT INTO due VALUES (?, ?)", arguments: [now + 60_000, position])
        }
        try db.execute(
            sql: """
                INSERT INTO outcome (position, secret, device, app, origin_kind, origin, kind, accepted_at, expires_at,
                    outcome, final_at)
                VALUES (2, ?, 1, 1, 0, 1, 0, \(now), \(now + 60_000), 'acknowledged', \(now))
                """,
            arguments: [Bytes16(high: 5, low: 2).data])
        try db.execute(sql: "INSERT INTO due VALUES (?, 2)", arguments: [now + 7 * 86_400_000])
        try db.execute(
            sql: """
                INSERT INTO idempotency (origin_kind, origin, key_hash, fingerprint, position, secret, device, accepted_at,
                    expires_at, valid_until)
                VALUES (0, 1, ?, ?, 3, ?, 1, \(now), \(now + 60_000), \(now + 86_400_000))
                """,
            arguments: [Data(key.keyHash), Data(key.fingerprint), Bytes16(high: 5, low: 3).data])
    }

    @Test(arguments: 1..<Schema.version)
    func `an earlier file keeps its waiting messages, the known outcomes, and the used keys`(
        version: Int
    ) async throws {
        let directory = try makeFile(version: version)
        let store = try SQLiteStore(directory: directory)
        let device = try #require(try await store.device(DeviceID(Bytes16(high: 1, low: 1))))
        let waiting = try #require(
            try await store.waiting(device: device.serial, after: 0, limit: 9, bytes: 9999, at: start))
        #expect(waiting.map(\.position) == [1, 3])
        let id = ServerID(Bytes16(high: 8, low: 8))
        #expect(try await store.serverID(proposing: id) == id)
        #expect(
            waiting.first?.kind == .message(.init(body: Array("hello".utf8), coding: ContentCoding(.identity))))
        let second = MessageID(position: 2, secret: Bytes16(high: 5, low: 2))
        #expect(try await store.record(of: second, at: start)?.finalOutcome?.outcome == .acknowledged)
        var again = waiting[0]
        again.id = MessageID(position: 9, secret: Bytes16(high: 5, low: 9))
        let repeated = try await store.commit([.append(again, AppendRules(idempotency: key))])
        guard case .duplicate(let id, _, _, nil) = repeated[0] else {
            Issue.record("the key is forgotten: \(repeated)")
            return
        }
        #expect(id.position == 3)
        let settle = InboxOperation.finish(
            waiting[0].id, device: device.serial, FinalOutcome(.acknowledged, at: start))
        #expect(try await store.commit([settle]) == [.finished])
        #expect(try await store.waitingInAll() == .init(envelopes: 1, bytes: 133))
        // Work that becomes due by time still does.
        let swept = try await store.sweep(at: start.adding(seconds: 120), limit: 10)
        #expect(swept.expired.map(\.position) == [3])
        #expect(try await store.waitingInAll() == .init())
        try store.close()
        let reopened = try SQLiteStore(directory: directory)
        #expect(try await reopened.waitingCount(device: device.serial, at: start) == 0)
        try reopened.close()
    }

    @Test(arguments: 1..<Schema.version)
    func `outcomes of an earlier file count among those that are kept of a device`(version: Int) async throws {
        let directory = try makeFile(version: version)
        var settings = StoreSettings()
        settings.inbox.outcomes = 1
        let store = try SQLiteStore(directory: directory, settings: settings)
        let (first, second) = (
            MessageID(position: 1, secret: Bytes16(high: 5, low: 1)),
            MessageID(position: 2, secret: Bytes16(high: 5, low: 2))
        )
        let settle = InboxOperation.finish(first, device: DeviceSerial(1), FinalOutcome(.acknowledged, at: start))
        #expect(try await store.commit([settle]) == [.finished])
        let left = try await [store.record(of: first, at: start), store.record(of: second, at: start)].compactMap(\.self)
        #expect(left.count == 1)
        try store.close()
    }

    @Test(arguments: 7..<Schema.version)
    func `an earlier file keeps the sealing keys, the reports of devices, and the number of devices`(
        version: Int
    ) async throws {
        let directory = try makeFile(version: version)
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { [start] db in
            try db.execute(
                sql: version < 8
                    ? "INSERT INTO token_key VALUES (1, zeroblob(32), 1), (2, zeroblob(32), 2)"
                    : "INSERT INTO token_key VALUES (1, zeroblob(32), 0, 1), (2, zeroblob(32), 0, 2)")
            try db.execute(
                sql: """
                    INSERT INTO device_profile (device, app, platform, token, environment, revision, confirmed_at, takings,
                        taken_on, reason, status_at, locale)
                    VALUES (1, 1, 'apple', x'aa01', 'production', 3, ?1, 2, ?2, 'token_dead', ?1, 'de')
                    """, arguments: [start.milliseconds, start.seconds / 86_400])
        }
        try queue.close()
        var settings = StoreSettings()
        settings.devicesPerApp = 1
        let store = try SQLiteStore(directory: directory, settings: settings)
        let ring = try await store.keyRing()
        #expect(ring.map(\.id) == [2, 1] && ring.allSatisfy { !$0.isWrapped && $0.bytes == Array(repeating: 0, count: 32) })
        let registration = try #require(try await store.registration(of: DeviceSerial(1)))
        #expect(registration.profile.address?.token == (try PushToken(hexadecimal: "aa01")))
        #expect(registration.status == .suspended(.tokenDead) && registration.profile.locale == "de")
        #expect(registration.addressRevision == 3 && registration.tokenTransfers == 2)
        // The one existing device counts, and is removed with its token's token transfers.
        let app = try #require(AppID("com.example.app"))
        let new = NewDevice(DeviceID(Bytes16(high: 2, low: 2)), app: app, profile: registration.profile)
        func insert() async throws -> InsertedDevice {
            try await store.insertDevice(new, at: start, credential: .fixed(SecretHash(of: [2, 2])))
        }
        guard case .refused(let refusal) = try await insert() else {
            Issue.record("the device was not counted")
            return
        }
        #expect(refusal.code == .devicesTooMany)
        _ = try await store.deleteDevice(DeviceSerial(1), at: start)
        guard case .stored(let device, _) = try await insert() else {
            Issue.record("the device is counted still")
            return
        }
        #expect(try await store.registration(of: device.serial)?.tokenTransfers == 2)
        try store.close()
    }

    @Test(arguments: 1..<Schema.version)
    func `an earlier file accepts a watch`(version: Int) async throws {
        let directory = try makeFile(version: version)
        let store = try SQLiteStore(directory: directory)
        let request = WatchRequest(
            channel: ChannelSerial(1), ping: nil, firstDueAt: nil,
            disconnectAddress: try CallAddress("http://example.com"), sealed: .init(secret: [1], token: [2]),
            callbackID: "msg_1", renewsSecret: false)
        guard case .put(_, isNew: true) = try await store.putWatch(request, at: start) else {
            Issue.record("the watch is not taken")
            return
        }
        try store.close()
        let again = try SQLiteStore(directory: directory)
        #expect(try await again.watch(of: ChannelSerial(1)) != nil)
        try again.close()
    }

    @Test(arguments: [(SubscriptionLimits.throttledFirings, 1), (1, SubscriptionLimits.throttledBytes)])
    func `firings in an earlier file count against the limits of their device`(
        firings: Int, bytes: Int
    ) async throws {
        let directory = try makeFile(version: 31)
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { [start] db in
            try db.execute(
                sql: """
                    INSERT INTO subscription (serial, id, device, app, fields, tags, format, policy, cool_down, items, status,
                        status_at, revision, created_at, max_frequency)
                    VALUES (1, randomblob(16), 1, 1, x'', x'', '{}', 2, 0, 1, 0, 1, 1, 1, 1.0);
                    INSERT INTO item (app, name, mode, fields, updated_at, version) VALUES (1, 'a', 0, x'', 1, 1);
                    INSERT INTO subscription_item (app, item, subscription, place, version, told_at)
                    VALUES (1, 'a', 1, 0, 1, \(start.milliseconds));
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(firings))
                    INSERT INTO held_firing (subscription, device, item, revision, notification, ttl, is_always_pushed, due_at)
                    SELECT 1, 1, 'b', 1, zeroblob(\(bytes)), 60, 0, CASE i WHEN 1 THEN 1 END FROM n;
                    """)
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        let firing = ThrottledFiring(
            target: .init(subscription: SubscriptionSerial(1), revision: 1), device: DeviceSerial(1),
            item: try #require(ItemName("a")), number: 1, body: [1], ttl: 60, isAlwaysPushed: false, isDistinct: false,
            milliseconds: 1000, buffer: 1)
        #expect(try await store.throttle([firing], at: start) == [.full])
        let due = try #require(try await store.dueFirings(at: start, limit: 9).first)
        #expect(due.body.count == bytes)
        try await store.dropThrottled([due.number], at: start)
        #expect(try await store.throttle([firing], at: start) == [.throttled(insteadOf: 0)])
        try store.close()
    }

    @Test func `a file of version 15 keeps its updates, and its devices missed none that were evaluated for them`()
        async throws
    {
        let directory = try makeFile(version: 15)
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { [start] db in
            try db.execute(
                sql: """
                    INSERT INTO binding (device, app, profile, parameters, kinds, held_to, created_at)
                        VALUES (1, 1, '', x'7b7d', 'content', 1, ?1);
                    """, arguments: [start.milliseconds])
            for serial in 1...2 {
                try db.execute(sql: "INSERT INTO shared_content (body) VALUES (x'7b7d')")
                try db.execute(
                    sql: """
                        INSERT INTO audience_update (id, app, kind, is_indexed, is_standing, published_at, expires_at, status,
                            status_at, content, wakes) VALUES (?, 1, 'content', 1, 0, ?2, ?2, 3, ?2, ?, 0)
                        """, arguments: [Bytes16(high: 9, low: UInt64(serial)).data, start.milliseconds, serial])
            }
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        let app = AppSerial(1)
        let binding = try #require(try await store.binding(of: DeviceSerial(1), profile: "", at: start))
        #expect(binding.cursor.place == UpdateSerial(1) && binding.seenTo == UpdateSerial(1))
        #expect(!binding.needsResync && binding.receivedTo == ReceivedTo(all: 0, updates: 0))
        #expect(try await store.lastExpiredContent(of: app) == UpdateSerial(2))
        let missed = try await store.expiredContent(of: app, after: binding.seenTo, limit: 9)
        #expect(missed?.map(\.serial) == [UpdateSerial(2)] && missed?.first?.isResync == false)
        #expect(try await store.audit(of: app, before: nil, limit: 9).isEmpty)
        try store.close()
    }

    @Test func `a device of version 30 whose token was taken keeps only a corrected environment`() async throws {
        let directory = try makeFile(version: 30)
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        let devices: [(serial: Int, reason: String?, said: String?)] = [
            (11, "token_taken", nil), (12, "token_taken", "sandbox"), (13, "token_taken", "production"), (14, nil, nil),
            (15, "operator", "sandbox"),
        ]
        try await queue.write { [start] db in
            for device in devices {
                try db.execute(
                    sql: "INSERT INTO device (serial, id, app, credential_hash, created_at) VALUES (?, ?, 1, ?, ?)",
                    arguments: [
                        device.serial, Bytes16(high: 1, low: UInt64(device.serial)).data,
                        Data(SecretHash(of: [UInt8(device.serial)]).bytes), start.milliseconds,
                    ])
                try db.execute(
                    sql: """
                        INSERT INTO device_profile (device, app, revision, confirmed_at, takings, taken_on, reason, status_at,
                            said_environment) VALUES (?1, 1, 1, ?2, 0, 0, ?3, ?2, ?4)
                        """,
                    arguments: [device.serial, start.milliseconds, device.reason, device.said])
            }
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        var kept: [DeviceProfile.Service?] = []
        for device in devices {
            kept.append(try await store.registration(of: DeviceSerial(Int64(device.serial)))?.profile.formerService)
        }
        let expected: [DeviceProfile.Service?] = [
            nil, DeviceProfile.Service(platform: .apple, environment: .production),
            DeviceProfile.Service(platform: .apple, environment: .sandbox), nil, nil,
        ]
        #expect(kept == expected)
        try store.close()
    }

    @Test func `a file of version 31 keeps its requests, and the deletion of a device ends them`() async throws {
        let directory = try makeFile(version: 31)
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { [start] db in
            let deadline = start.milliseconds + 60_000
            for (serial, consumer, provider) in [(1, 1, 2), (2, 2, 1)] as [(UInt64, Int64, Int64)] {
                try db.execute(
                    sql: """
                        INSERT INTO service_request (serial, secret, id, consumer, consumer_app, provider, provider_app,
                            fingerprint, expires_at, due_at) VALUES (?, ?, ?, ?, 1, ?, 1, x'00', ?, ?)
                        """,
                    arguments: [
                        serial, Bytes16(high: 5, low: serial).data, Bytes16(high: 6, low: serial).data, consumer,
                        provider, deadline, deadline,
                    ])
            }
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        let (own, other) = (ServiceRequestID(Bytes16(high: 6, low: 1)), ServiceRequestID(Bytes16(high: 6, low: 2)))
        #expect(try await store.serviceRequest(own)?.consumer == DeviceSerial(1))
        #expect(try await store.serviceRequest(other)?.fault == nil)
        #expect(try await store.dueRequests(at: start, limit: 9).isEmpty)
        _ = try await store.deleteDevice(DeviceSerial(1), at: start)
        #expect(try await store.serviceRequest(own) == nil)
        #expect(try await store.dueRequests(at: start, limit: 9).map(\.id) == [other])
        #expect(try await store.serviceRequest(other)?.fault == .applicationNotFound)
        try store.close()
    }
}
