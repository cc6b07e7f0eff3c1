import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestSupport
import Testing

@testable import CarillonSQLite

/// A file of version 40, which is the version before this one.
@Suite(.timeLimit(.minutes(5)))
struct FormerVersionTests {
    private static let former = 40

    private let start = StoreFixture.start
    private let serial = DeviceSerial(1)
    private let queue = PushQueue(app: AppSerial(1), environment: .production)

    /// The contents of a file.
    private struct Content {
        var device: Device
        var registration: DeviceRegistration
        var channel: PushChannel
        var envelope: Envelope
        var subscription: Subscription
    }

    private static func open(_ directory: String) throws -> DatabaseQueue {
        try DatabaseQueue(path: directory + "/carillon.sqlite")
    }

    /// Makes a file of the former version with a device.
    private func makeFile() throws -> String {
        let directory = try TemporaryDirectory.make()
        let queue = try Self.open(directory)
        try queue.write { [start] db in
            let now = start.milliseconds
            try Schema.bring(db, to: Self.former)
            try db.execute(sql: "INSERT INTO app (serial, id, created_at) VALUES (1, 'com.example.app', \(now))")
            try db.execute(
                sql: """
                    INSERT INTO device (serial, id, app, credential_hash, created_at, access_key)
                    VALUES (1, ?, 1, ?, \(now), 7)
                    """, arguments: [Bytes16(high: 1, low: 1).data, Data(SecretHash(of: [1]).bytes)])
        }
        try queue.close()
        return directory
    }

    /// Adds a channel, a message that waits, its push and a subscription of the device. This version writes them as the former one did.
    private func fill(_ directory: String) async throws -> Content {
        let store = try SQLiteStore(directory: directory)
        let device = try #require(try await store.device(serial))
        let channel = try await StoreFixture.open(1, of: device, in: store)
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
        let said = profile
        let changed = try await store.changeRegistration(of: device.serial, at: start) { _ in
            .reports(said, confirms: true)
        }
        _ = try #require(changed).get()
        let fixture = StoreFixture(store, device: device, first: channel, second: channel)
        let position = PositionSource(epoch: try await store.claimEpoch()).next(for: device.serial)
        let envelope = fixture.envelope(position, ttl: 100_000)
        let rules = AppendRules(wake: WakeRequest(.background, dueAt: start))
        #expect(try await store.commit([.append(envelope, rules)]) == [.stored(replaced: nil)])
        let request = SubscriptionRequest(
            proposed: SubscriptionID(Bytes16(high: 3, low: 1)), device: device.serial,
            definition: try SubscriptionFixture.definition(key: "k"), condition: nil, limit: 100)
        guard case .made(let made) = try await store.putSubscription(request, at: start) else {
            throw StoreFixture.Missing()
        }
        let subscription = try #require(try await store.subscription(made.id, of: serial))
        let registration = try #require(try await store.registration(of: device.serial))
        try store.close()
        return Content(
            device: device, registration: registration, channel: channel, envelope: envelope, subscription: subscription)
    }

    /// Returns the statements that made the tables, indexes and triggers of a file, and its version.
    private static func schema(_ db: Database) throws -> [String] {
        let made = try String.fetchAll(
            db, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type, name")
        return made + ["version \(try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0)"]
    }

    /// Reverses the steps behind the former version.
    private func bringBack(_ directory: String) throws {
        let former = try DatabaseQueue()
        try former.write { db in try Schema.bring(db, to: Self.former) }
        let select = "SELECT sql FROM sqlite_master WHERE name = 'device_of_key'"
        let found = try former.read { db in try String.fetchOne(db, sql: select) }
        let index = try #require(found)
        let queue = try Self.open(directory)
        try queue.write { db in try db.execute(sql: "\(index); PRAGMA user_version = \(Self.former);") }
        let schema = try queue.read { db in try Self.schema(db) }
        let formerSchema = try former.read { db in try Self.schema(db) }
        #expect(schema == formerSchema, "a step behind version 40 is not reversed")
        try queue.close()
    }

    @Test func `a file of version 40 has its channel, its message, its push and its subscription`() async throws {
        let directory = try makeFile()
        let content = try await fill(directory)
        try bringBack(directory)
        let store = try SQLiteStore(directory: directory)
        #expect(try await store.device(serial) == content.device)
        #expect(try await store.device(content.device.id) == content.device)
        #expect(try await store.registration(of: serial) == content.registration)
        #expect(try await store.channels(device: serial) == [content.channel])
        let waiting = try await store.waiting(device: serial, after: 0, limit: 9, bytes: 9999, at: start)
        #expect(waiting?.map(\.id) == [content.envelope.id] && waiting?.map(\.kind) == [content.envelope.kind])
        let subscription = try await store.subscription(content.subscription.id, of: serial)
        #expect(subscription == content.subscription)
        let pushes = try await store.leasePushes(
            of: queue, in: .all, limit: 9, at: start, until: start.adding(seconds: LeasedPush.leaseSeconds)
        ).pushes
        #expect(pushes.map(\.device) == [serial] && pushes.map(\.content) == [.wake])
        #expect(try await store.numbers("SELECT user_version FROM pragma_user_version") == [Int64(Schema.version)])
        try store.close()
    }
}
