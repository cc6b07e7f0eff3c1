import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// A thousand of each thing are made and removed, and no table has more rows than before.
@Suite(.timeLimit(.minutes(10)))
struct RowCountTests {
    private static let count = 1000
    /// Numbers that stay when they are zero: two of the store, and those of items and subscriptions of an app.
    private static let keptCounters = 4
    private let start = StoreFixture.start

    private func counts(_ store: SQLiteStore) async throws -> [String: Int] {
        try await store.read { db in
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            return try tables.reduce(into: [:]) { counts, table in
                counts[table] = try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(table)\"")
            }
        }
    }

    /// - Parameters:
    ///   - table: Has a row of each when all are made.
    ///   - atOnce: How many there may be.
    ///   - kept: Rows that may stay.
    ///   - width: How many are made at once; positions of an inbox ascend.
    private func check(
        _ table: String, atOnce: Int = count, kept: [String: Int] = [:], width: Int = 50,
        _ fixture: StoreFixture,
        make: @Sendable @escaping (Int) async throws -> Void, remove: @Sendable @escaping (Int) async throws -> Void
    ) async throws {
        let store = fixture.sqlite
        let before = try await counts(store)
        for first in stride(from: 1, through: Self.count, by: atOnce) {
            let numbers = first..<first + atOnce
            try await together(numbers, width, make)
            let made = try await store.rowCount(of: table) - (before[table] ?? 0)
            #expect(made >= atOnce, "\(table): \(made) of \(atOnce)")
            try await together(numbers, width, remove)
        }
        try await sweep(store)
        for (name, count) in try await counts(store) where !["inbox_log", "due"].contains(name) {
            let more = name == "counter" ? Self.keptCounters : kept[name] ?? 0
            #expect(count <= (before[name] ?? 0) + more, "\(name), of \(table)")
        }
        let wrong = try await SQLiteStores.memory.wrongCounters(in: store)
        #expect(wrong == [], "of \(table)")
    }

    private func together(_ numbers: Range<Int>, _ width: Int, _ work: @Sendable @escaping (Int) async throws -> Void)
        async throws
    {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, number) in numbers.enumerated() {
                if place >= width { try await group.next() }
                group.addTask { try await work(number) }
            }
            try await group.waitForAll()
        }
    }

    /// The rows that end by time.
    private func sweep(_ store: SQLiteStore) async throws {
        let later = start.adding(seconds: 500 * 86_400)
        while try await !store.sweep(at: later, limit: 5000).isDone {}
        while try await !store.continueDeletions(at: later, limit: 5000).isDone {}
        while try await !store.sweepPushes(at: later, limit: 5000) {}
        while try await !store.removeEndedAttachments(at: later, limit: 5000).isDone {}
        while try await store.forgetRequests(by: .uninterrupted(at: later), limit: 5000) > 0 {}
        // A hundred updates at a time.
        for _ in 0..<12 { _ = try await store.unfinishedOfEnded(limit: 5000) }
        while try await !store.forgetUpdates(UpdateLimits(), by: .uninterrupted(at: later), limit: 5000) {}
        try await store.forgetAudit(before: later, beyond: 0, limit: 100_000)
        while true {
            let handOvers = try await store.handOvers()
            if handOvers.isEmpty { break }
            try await store.apply(handOvers)
        }
        _ = try await store.sweep(at: later, limit: 5000)
    }

    private static func id(_ high: UInt64, _ number: Int) -> Bytes16 { Bytes16(high: high, low: UInt64(number)) }

    // MARK: Apps, keys, devices

    @Test func `apps, keys and devices remove their rows`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, start) = (fixture.sqlite, start)
        let ada = try #require(UserID("ada"))
        @Sendable func app(_ number: Int) throws -> AppID { try found(AppID("com.example.n\(number)")) }
        try await check("app", fixture) { number in
            _ = try await store.createApp(try app(number), at: start)
        } remove: { number in
            _ = try await store.deleteApp(try app(number), at: start)
        }
        try await check("access_key", kept: ["access_key": AccessKey.revokedKept], fixture) { number in
            _ = try await store.insertKey(
                AccessKey(
                    id: KeyID(UInt64(number)), role: .admin, app: nil, name: nil, secretHash: SecretHash(of: [1]),
                    createdAt: start))
        } remove: { number in
            _ = try await store.revokeKey(KeyID(UInt64(number)), at: start)
        }
        #expect(try await store.rowCount(of: "access_key") == AccessKey.revokedKept)
        try await check("device_profile", fixture) { number in
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: String(100_000 + number)), environment: .production)
            let new = NewDevice(
                DeviceID(Self.id(9, number)), app: try StoreFixture.appID,
                registration: SecretHash(of: Array("r\(number)".utf8)), profile: profile, user: .signedIn(ada))
            _ = try await fixture.insert(new, secret: Array("s\(number)".utf8))
        } remove: { number in
            let device = try found(try await store.device(DeviceID(Self.id(9, number))))
            _ = try await store.deleteDevice(device.serial, at: start)
        }
    }

    // MARK: Channels and messages

    @Test func `channels, watches, messages and keys of senders remove their rows`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, start) = (fixture.sqlite, start)
        try await check("watch", fixture) { number in
            let channel = try await StoreFixture.open(UInt64(100 + number), of: fixture.device, in: store, limit: 9999)
            let put = try await store.putWatch(
                WatchRequest(
                    channel: channel.serial, ping: nil, firstDueAt: nil,
                    disconnectAddress: try CallAddress("https://example.com/"), sealed: .init(secret: [1], token: [2]),
                    callbackID: "msg_\(number)", renewsSecret: false, limits: WatchLimits(perDevice: 9999)), at: start)
            guard case .put = put else { throw StoreFixture.Missing() }
        } remove: { number in
            let id = ChannelID(Self.id(7, 100 + number))
            let channel = try found(try await store.channel(id, device: fixture.device.serial))
            // Watches that end with their channel require a callback.
            try must(try await store.removeWatch(of: channel.serial))
            _ = try await store.closeChannel(id, device: fixture.device.serial, at: start)
        }
        try await check("envelope", width: 1, fixture) { number in
            let claim = IdempotencyClaim(
                keyHash: Array("k\(number)".utf8), fingerprint: [1], validUntil: start.adding(seconds: 86_400))
            _ = try await fixture.append(fixture.envelope(Int64(number)), topic: "t\(number)", claim: claim)
        } remove: { number in
            _ = try await store.commit([fixture.acknowledge(Int64(number))])
        }
        try await check("shared_content", fixture) { number in
            _ = try await store.addContent([UInt8(truncatingIfNeeded: number)])
        } remove: { number in
            try await store.releaseContent(SharedContentID(Int64(number)))
        }
    }

    @Test func `pushes and wakes remove their rows`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, start) = (fixture.sqlite, start)
        let text = AppDocument.Key(.alertText, of: fixture.device.app)
        _ = try await store.putDocument(Array("{}".utf8), as: text, at: start)
        let address = DeviceProfile.Address(
            platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
        var profile = DeviceProfile()
        profile.address = address
        let report = RegistrationRequest.reports(profile, confirms: true)
        _ = try await store.changeRegistration(of: fixture.device.serial, at: start) { _ in report }
        try await check("push", atOnce: 20, width: 1, fixture) { number in
            let append = InboxOperation.append(
                fixture.envelope(Int64(number)), AppendRules(wake: WakeRequest(.alert, dueAt: start)))
            _ = try await store.commit([append])
        } remove: { number in
            _ = try await store.commit([fixture.acknowledge(Int64(number))])
            let queue = PushQueue(app: fixture.device.app, environment: .production)
            let later = start.adding(seconds: 100_000)
            let leased = try await store.leasePushes(of: queue, limit: 100, at: later, until: later.adding(seconds: 60))
            _ = try await store.endPushes(leased.pushes.map { PushEnd($0, .handed, at: later) })
        }
    }

    // MARK: Features

    @Test func `subscriptions remove their rows`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, start, device) = (fixture.sqlite, start, fixture.device)
        try await check("subscription", fixture) { number in
            try await store.run(
                """
                INSERT INTO subscription (serial, id, device, app, fields, tags, format, policy, cool_down, items, status, status_at,
                    revision, created_at)
                VALUES (\(number), randomblob(16), \(device.serial.rawValue), \(device.app.rawValue), x'', x'', '{}', 0, 0, 1, 0, 1, 1, 1);
                INSERT INTO counter (app, name, home, value) VALUES (\(device.app.rawValue), 'subscriptions', 0, 1)
                    ON CONFLICT (app, name, home) DO UPDATE SET value = counter.value + excluded.value;
                INSERT INTO condition_shape (serial, shape, source) VALUES (\(number), 's\(number)', 'x');
                INSERT INTO subscription_item (app, item, subscription, place, shape, version)
                    VALUES (\(device.app.rawValue), 'i', \(number), 0, \(number), 0);
                INSERT INTO held_firing (subscription, device, item, revision, notification, bytes, ttl, is_always_pushed)
                    VALUES (\(number), \(device.serial.rawValue), 'i', 1, x'00', 1, 1, 0);
                """)
        } remove: { number in
            _ = try await store.endSubscriptions([SubscriptionSerial(Int64(number))], of: device.serial)
            try await store.removeSubscriptions(
                [EndedSubscription(serial: SubscriptionSerial(Int64(number)), device: device.serial)], at: start)
        }
    }

    @Test func `updates and profiles remove their rows`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, start, device) = (fixture.sqlite, start, fixture.device)
        try await check("audience_update", fixture) { number in
            let definition = Update.Definition(
                kind: .definitions, payload: Array("{}".utf8), audience: nil, mode: .once, ttlSeconds: 3600, orderKey: nil,
                supersedes: nil)
            let request = UpdateRequest(
                proposed: UpdateID(Self.id(1, number)), app: device.app, key: KeyID(1), definition: definition, body: [7],
                isIndexed: true, idempotency: nil, limits: .init())
            guard case .made = try await store.publishUpdate(request, at: start) else { throw StoreFixture.Missing() }
        } remove: { number in
            let update = try found(try await store.update(UpdateID(Self.id(1, number)), of: device.app))
            try must(try await store.withdrawUpdate(update, by: KeyID(1), at: start))
        }
        for number in 1...Self.count {
            let now = start.adding(seconds: Int64(number))
            try must(try await store.binding(of: device.serial, profile: "p\(number)", at: now) != nil)
        }
        #expect(try await store.rowCount(of: "binding") == UpdateBinding.mostOfDevice)
        _ = try await store.deleteDevice(device.serial, at: start)
        #expect(try await store.rowCount(of: "binding") == 0)
    }

    @Test func `attachments remove their rows`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, start, device) = (fixture.sqlite, start, fixture.device)
        let owner = AttachmentUser(app: device.app, principal: .senders)
        try await check("attachment", fixture) { number in
            var limits = AttachmentLimits()
            limits.uploadsOfSenders = 9999
            let added = try await store.addAttachment(
                AttachmentRequest(
                    proposed: AttachmentID(Self.id(3, number)), owner: owner, length: 1, digest: nil,
                    readers: [.device(device.serial), .senders], lifetimeSeconds: 60, idempotency: nil, limits: limits),
                at: start)
            guard case .added = added else { throw StoreFixture.Missing() }
        } remove: { number in
            let attachment = try found(try await store.attachment(AttachmentID(Self.id(3, number))))
            if number % 2 == 0 {
                try must(try await store.removeAttachment(attachment.serial))
            } else {
                for reader in [AttachmentPrincipal.device(device.serial), .senders] {
                    _ = try await store.attachmentReceived(attachment.serial, by: reader)
                }
            }
        }
    }

    @Test func `requests of services remove their rows`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, start, consumer) = (fixture.sqlite, start, fixture.device)
        let ada = try #require(UserID("ada"))
        let new = NewDevice(DeviceID(Self.id(9, 1)), app: try StoreFixture.appID, user: .signedIn(ada))
        let provider = try #require(try await fixture.insert(new, secret: [9]))
        let report = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: .signedIn(ada))
        _ = try await store.changeRegistration(of: consumer.serial, at: start) { _ in report }
        let keys = KeyBundle(
            identity: Array(repeating: 1, count: 32), id: "00112233445566aa", key: Array(repeating: 2, count: 32),
            until: 2_000_000_000_000, signature: Array(repeating: 3, count: 64))
        let profile = ServiceProvider.Profile(name: "Files", version: "1", offers: [], keys: keys)
        _ = try await store.putServiceProfile(profile, of: provider.serial)
        @Sendable func request(_ number: Int) -> ServiceRequest {
            ServiceRequest(
                id: ServiceRequestID(Self.id(4, number)),
                envelope: MessageID(position: Int64(number), secret: Self.id(5, number)), consumer: consumer.serial,
                consumerApp: consumer.app, provider: provider.serial, providerApp: provider.app, fingerprint: [1],
                expiresAt: start.adding(seconds: 604_800))
        }
        @Sendable func ask(_ number: Int) async throws {
            let request = request(number)
            let envelope = Envelope(
                id: request.envelope, device: provider.serial, app: provider.app, origin: request.origin,
                kind: .service(.request, body: [1]), acceptedAt: start, expiresAt: request.expiresAt)
            let parties = RequestUsers(consumer: .user(ada), provider: ada)
            let rules = AppendRules(effects: [.request(.made(request, between: parties))])
            guard try await store.commit([.append(envelope, rules)]) == [.stored(replaced: nil)] else {
                throw StoreFixture.Missing()
            }
        }
        @Sendable func cancel(_ number: Int) async throws {
            let settle = InboxOperation.finish(request(number).envelope, device: nil, FinalOutcome(.cancelled, at: start))
            try must(try await store.commit([settle]) == [.finished])
            try must(try await store.cancelRequest(request(number).serial, at: start))
        }
        try await check("service_request", width: 1, fixture, make: ask, remove: cancel)
        // Of ids that were cancelled before their delivery a thousand are kept, the newest.
        for number in 2001...2000 + ServiceRequest.undeliveredOfConsumer + 10 {
            try await ask(number)
            try await cancel(number)
        }
        #expect(try await store.rowCount(of: "service_request") == ServiceRequest.undeliveredOfConsumer)
        #expect(try await store.numbers("SELECT min(serial) FROM service_request") == [2011])
        #expect(try await store.removeServiceProfile(of: provider.serial))
        #expect(try await store.rowCount(of: "service_provider") == 0)
    }
}

private func must(_ isTrue: Bool) throws {
    if !isTrue { throw StoreFixture.Missing() }
}

private func found<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw StoreFixture.Missing() }
    return value
}
