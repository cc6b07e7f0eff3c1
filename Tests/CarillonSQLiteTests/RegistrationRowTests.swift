import CarillonCore
import CarillonWire
import Foundation
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The number of devices of an app beside the rows, the tokens that were released, and the statements of a registration.
@Suite(.timeLimit(.minutes(5)))
struct RegistrationRowTests {
    private let start = StoreFixture.start

    private func profile(_ token: String?) throws -> DeviceProfile {
        var profile = DeviceProfile()
        if let token {
            profile.address = .init(platform: .apple, token: try PushToken(hexadecimal: token), environment: .production)
        }
        return profile
    }

    private func new(
        _ number: UInt64, secret: UInt8? = nil, address: UInt32? = nil, token: String? = nil
    ) throws -> NewDevice {
        NewDevice(
            DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID,
            registration: secret.map { SecretHash(of: [$0]) }, isAnonymous: address != nil,
            quota: address.map { .init(address: .v4($0), limit: 1) }, profile: try token.map { try profile($0) })
    }

    private static let credential = NewCredential.made(of: .ofRegistration("a secret"))

    private func insert(_ new: NewDevice, _ store: SQLiteStore, at now: Timestamp? = nil) async throws -> Device? {
        let inserted = try await store.insertDevice(new, at: now ?? start, credential: Self.credential)
        guard case .stored(let device, _) = inserted else { return nil }
        return device
    }

    /// The number of devices of each app.
    private func expectCounts(_ store: SQLiteStore, _ expected: [Int64]) async throws {
        let (counted, rows) = try await store.read { db in
            let counted = try Int64.fetchAll(
                db,
                sql: """
                    SELECT (SELECT coalesce(sum(value), 0) FROM counter WHERE counter.app = app.serial AND name = 'devices')
                    FROM app ORDER BY serial
                    """)
            let rows = try Int64.fetchAll(
                db, sql: "SELECT (SELECT count(*) FROM device WHERE device.app = app.serial) FROM app ORDER BY app.serial")
            return (counted, rows)
        }
        #expect(counted == expected)
        #expect(rows == expected)
    }

    // MARK: Counts

    @Test func `the number of devices follows the rows`() async throws {
        let fixture = try await StoreFixture(try SQLiteStore(inMemory: StoreSettings(devicesPerApp: 4)))
        let store = fixture.sqlite
        try await expectCounts(store, [1])
        let first = try #require(try await insert(new(1, secret: 1), store))
        #expect(try await insert(new(2, secret: 1), store)?.serial == first.serial)
        try await expectCounts(store, [2])
        let anonymous = try #require(try await insert(new(3, address: 1), store))
        #expect(try await insert(new(4, address: 1), store) == nil)
        let last = try #require(try await insert(new(5), store))
        #expect(try await insert(new(6), store) == nil)
        try await expectCounts(store, [4])
        _ = try await store.deleteDevice(first.serial, at: start)
        #expect(try await store.deleteDevice(first.serial, at: start) == nil)
        try await expectCounts(store, [3])
        let early = RetentionCutoff(wall: start.adding(milliseconds: -1), served: 0)
        #expect(try await store.deleteDevice(anonymous.serial, unlessSeenAfter: early, at: start) == nil)
        let cutoff = RetentionCutoff(wall: start, served: 0)
        #expect(try await store.deleteDevice(anonymous.serial, unlessSeenAfter: cutoff, at: start) != nil)
        try await expectCounts(store, [2])

        let other = try #require(AppID("com.example.other"))
        _ = try await store.createApp(other, at: start)
        let elsewhere = NewDevice(DeviceID(Bytes16(high: 9, low: 7)), app: other)
        let kept = try await insert(elsewhere, store)
        #expect(kept != nil)
        _ = try await store.deleteApp(fixture.device.appID, at: start)
        try await expectCounts(store, [2, 1])
        _ = try await store.continueDeletions(at: start, limit: 1)
        try await expectCounts(store, [1, 1])
        while try await !store.continueDeletions(at: start, limit: 1).isDone {}
        try await expectCounts(store, [1])
        #expect(try await store.device(last.serial) == nil)
    }

    @Test func `the number of devices follows the rows when other work of the commit fails`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, device, now) = (fixture.sqlite, fixture.device.serial, start)
        let (one, two) = (try new(1), try new(2))
        let gate = Gate()
        async let before: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await store.insertDevice(one, at: now, credential: Self.credential) },
            {
                try await store.group.run { db in
                    try RegistrationChangeWriter(db).addDevices(5, to: AppSerial(1))
                    throw StoreFault(.full, "its own")
                }
            },
            { _ = try await store.insertDevice(two, at: now, credential: Self.credential) },
            { _ = try await store.deleteDevice(device, at: now) },
        ]
        let results = await together(works) { gate.open() }
        try await before
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true, true])
        try await expectCounts(store, [2])
    }

    // MARK: Tokens

    /// How often released tokens were taken.
    private func released(_ store: SQLiteStore) async throws -> [Int64] {
        try await store.read { db in
            try Int64.fetchAll(db, sql: "SELECT takings FROM released_token ORDER BY taken_on, token")
        }
    }

    @Test func `a token is remembered when it is released, and forgotten after its day`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        _ = try await insert(new(1, token: "aa01"), store)
        let second = try #require(try await insert(new(2, token: "aa01"), store))
        #expect(try await released(store) == [], "another device has it")
        let third = try #require(try await insert(new(3, token: "aa01"), store))
        _ = try await store.deleteDevice(second.serial, at: start)
        #expect(try await released(store) == [])
        let none = try profile(nil)
        _ = try await store.changeRegistration(of: third.serial, at: start) { _ in .reports(none, confirms: true) }
        #expect(try await released(store) == [2])
        let fourth = try #require(try await insert(new(4, token: "aa01"), store))
        _ = try await insert(new(5, token: "aa01"), store)
        _ = try await store.deleteDevice(fourth.serial, at: start)
        #expect(try await released(store) == [2])
        try await store.group.run { db in
            for token in 1...12 {
                try db.run("INSERT INTO released_token VALUES (1, 'apple', ?, 1, 1)", [Data([UInt8(token)])])
            }
        }
        let fifth = try #require(try await store.device(DeviceID(Bytes16(high: 9, low: 5))))
        _ = try await store.deleteDevice(fifth.serial, at: start)
        #expect(try await released(store) == [1, 1, 3])
    }

    @Test func `a token is remembered if its environment cannot be read`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        _ = try await insert(new(1, token: "aa01"), store)
        let second = try #require(try await insert(new(2, token: "aa01"), store)).serial
        try await store.group.run { db in
            try db.run("UPDATE device_profile SET environment = 'none' WHERE device = ?", [second.rawValue])
        }
        _ = try await store.deleteDevice(second, at: start)
        #expect(try await released(store) == [1])
    }

    @Test func `tokens that were released are forgotten with their app`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        _ = try await insert(new(1, token: "aa01"), store)
        let second = try #require(try await insert(new(2, token: "aa01"), store)).serial
        _ = try await store.deleteDevice(second, at: start)
        #expect(try await released(store) == [1])
        _ = try await store.deleteApp(fixture.device.appID, at: start)
        while try await !store.continueDeletions(at: start, limit: 100).isDone {}
        #expect(try await released(store) == [])
    }

    // MARK: Statuses

    @Test func `a status lasts from its change, whatever the device reports meanwhile`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, device, now) = (fixture.sqlite, fixture.device.serial, start)
        func served() async throws -> [Int64] {
            try await store.read { db in try Int64.fetchAll(db, sql: "SELECT status_served FROM device_profile") }
        }
        try await store.noteServed(50)
        _ = try await store.changeRegistration(of: device, at: now) { current in
            RegistrationRules.suspend(current, because: .byOperator, at: now).map { .becomes($0) } ?? .nothing
        }
        #expect(try await served() == [50])
        try await store.noteServed(100)
        let said = try profile("aa01")
        _ = try await store.changeRegistration(of: device, at: now) { _ in .reports(said, confirms: true) }
        #expect(try await store.registration(of: device)?.profile == said)
        #expect(try await served() == [50])
        _ = try await store.changeRegistration(of: device, at: now) { current in
            RegistrationRules.resume(current, at: now).map { .becomes($0) } ?? .nothing
        }
        #expect(try await served() == [100])
    }

    // MARK: Statements

    private static let words = ["device", "channel", "address", "released_token"]
    /// Of statements about other features, which run in the same calls.
    private static let otherWords = [
        "FROM wake", "UPDATE wake", "INTO wake", "push", "token NOT NULL", "watch", "subscription", "attachment", "inbox",
    ]

    /// The statements on rows of devices and channels. A statement counts once.
    private func statements(of store: SQLiteStore, in work: () async throws -> Void) async throws -> Int {
        let seen = Set(try await store.tracing(work).statements)
        return seen.count { sql in
            Self.words.contains { sql.contains($0) } && !Self.otherWords.contains { sql.contains($0) }
        }
    }

    @Test func `a registration runs as many statements as the documentation lists`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        func register(_ new: NewDevice) async throws -> Int {
            try await statements(of: store) { _ = try await insert(new, store) }
        }
        func open(_ number: UInt64, of device: DeviceSerial, wake: WakeMode? = nil) async throws -> Int {
            try await statements(of: store) {
                _ = try await store.openChannel(
                    ChannelID(Bytes16(high: 7, low: number)), device: device, name: nil, vapidKey: nil, wake: wake,
                    limit: 10, at: start)
            }
        }
        #expect(try await register(new(1)) == 3)
        #expect(try await register(new(2, secret: 2)) == 4)
        #expect(try await register(new(3, secret: 2)) == 2)
        #expect(try await register(new(4, secret: 4, token: "aa04")) == 5)
        #expect(try await register(new(5, secret: 4, token: "aa04")) == 2)
        #expect(try await register(new(6, address: 6)) == 5)
        let device = try #require(try await store.device(DeviceID(Bytes16(high: 9, low: 2)))).serial
        #expect(try await open(1, of: device) == 2)
        #expect(try await open(1, of: device) == 1)
        #expect(try await open(1, of: device, wake: .alert) == 2)
        let said = try await statements(of: store) {
            _ = try await store.changeRegistration(of: device, at: start) { .reports($0.profile, confirms: true) }
        }
        #expect(said == 1)
    }

    @Test func `another token and the end of a device run as many statements as the documentation lists`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let store = fixture.sqlite
        let first = try #require(try await insert(new(1), store)).serial
        let second = try #require(try await insert(new(2, token: "aa02"), store)).serial
        func say(_ token: String) async throws -> Int {
            let said = try profile(token)
            return try await statements(of: store) {
                _ = try await store.changeRegistration(of: first, at: start) { _ in .reports(said, confirms: true) }
            }
        }
        func remove(_ device: DeviceSerial) async throws -> Int {
            try await statements(of: store) { _ = try await store.deleteDevice(device, at: start) }
        }
        #expect(try await say("aa01") == 3)
        #expect(try await say("aa02") == 3, "another device had the token")
        #expect(try await say("aa03") == 5, "the token before was taken")
        #expect(try await released(store) == [1])
        #expect(try await remove(second) == 3)
        let third = try #require(try await insert(new(3, token: "aa03"), store)).serial
        #expect(try await remove(third) == 5)
        #expect(try await released(store) == [1, 1])
    }
}
