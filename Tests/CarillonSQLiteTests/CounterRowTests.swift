import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The rows of each home in the table `counter`, and the check that compares the numbers with the counted rows.
@Suite(.timeLimit(.minutes(5)))
struct CounterRowTests {
    private let start = StoreFixture.start

    /// The name, the home and the value of each row.
    private static func rows(_ db: Database, _ condition: String) throws -> [String] {
        try String.fetchAll(
            db,
            sql: """
                SELECT name || ' ' || home || ' ' || value FROM counter WHERE \(condition) ORDER BY app, name, home
                """)
    }

    private func twoHomes(_ store: SQLiteStore) async throws -> (one: any HomeStore, two: any HomeStore) {
        let one = try await store.addIncarnation(of: NodeNumber(1))
        let two = try await store.addIncarnation(of: NodeNumber(2))
        return (store.home(one), store.home(two))
    }

    @Test func `each home changes a row of its own, also in one transaction`() async throws {
        let store = try await StoreFixture(SQLiteStores.memory).sqlite
        let (one, two) = try await twoHomes(store)
        let (now, app) = (start, try StoreFixture.appID)
        @Sendable func add(_ number: UInt8, by home: any DeviceStore) async throws {
            let new = NewDevice(DeviceID(Bytes16(high: 9, low: UInt64(number))), app: app)
            _ = try await home.insertDevice(new, at: now, credential: .fixed(SecretHash(of: [number])))
        }
        let gate = Gate()
        async let before: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let works: [@Sendable () async throws -> Void] = [
            { try await add(11, by: one) }, { try await add(12, by: two) }, { try await add(13, by: store) },
            { try await add(14, by: two) },
        ]
        let results = await together(works) { gate.open() }
        try await before
        #expect(results.allSatisfy { (try? $0.get()) != nil })
        let rows = try await store.read { db in try Self.rows(db, "name = 'devices'") }
        #expect(rows == ["devices 0 2", "devices 1 1", "devices 2 2"])
    }

    @Test func `rows of watches are removed unless another home added the watch`() async throws {
        let fixture = try await WatchFixture(SQLiteStores.memory)
        let (store, channel) = (fixture.base.sqlite, fixture.base.first.serial)
        let (one, two) = try await twoHomes(store)
        let request = try fixture.request()
        func watches() async throws -> [String] {
            try await store.read { db in try Self.rows(db, "name IN ('watches', 'callbacks')") }
        }
        _ = try await one.putWatch(request, at: start)
        #expect(try await watches() == ["callbacks 1 0", "watches 1 1"])
        #expect(try await one.removeWatch(of: channel))
        #expect(try await watches() == [])
        _ = try await one.putWatch(request, at: start)
        #expect(try await two.removeWatch(of: channel))
        #expect(try await watches() == ["callbacks 1 0", "watches 1 1", "watches 2 -1"])
    }

    @Test func `rows of several homes go with their app`() async throws {
        let fixture = try await WatchFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let (one, two) = try await twoHomes(store)
        _ = try await one.putWatch(try fixture.request(), at: start)
        let isDeleted = try await store.deleteApp(try StoreFixture.appID, at: start)
        #expect(isDeleted)
        while try await !two.continueDeletions(at: start, limit: 100).isDone {}
        let rows = try await store.read { db in try Self.rows(db, "app > 0 AND name <> 'callbacks'") }
        #expect(rows == [])
    }

    @Test func `the numbers of a file of version 39 become rows of their writers`() async throws {
        let queue = try DatabaseQueue()
        let rows = try await queue.write { db in
            try Schema.bring(db, to: 39)
            try db.execute(
                sql: """
                    UPDATE inbox_total SET envelopes = 4, bytes = 50;
                    INSERT INTO app (serial, id, created_at, devices, subscriptions) VALUES (1, 'com.example.app', 1, 3, 5);
                    INSERT INTO app (serial, id, created_at, items) VALUES (2, 'com.example.other', 1, 7);
                    INSERT INTO watch_usage (app, watches) VALUES (1, 2);
                    INSERT INTO watch_usage (app, callbacks) VALUES (2, 6);
                    INSERT INTO attachment_total (app, allowance, bytes) VALUES (1, '', 9), (1, 'uada', 9);
                    """)
            try Schema.bringUpToDate(db)
            return try [0, 1, 2].map { app in try Self.rows(db, "app = \(app)") }
        }
        #expect(rows[0] == ["envelope_bytes 1 50", "envelopes 1 4"])
        #expect(
            rows[1] == [
                "attachment_bytes: 0 9", "attachment_bytes:uada 0 9", "devices 1 3", "subscriptions 1 5", "watches 1 2",
            ])
        #expect(rows[2] == ["callbacks 1 6", "items 1 7"])
        try queue.close()
    }

    @Test(arguments: [
        ("UPDATE counter SET value = value + 1 WHERE name = 'devices'", "devices of 1"),
        ("INSERT INTO counter (app, name, home, value) VALUES (1, 'items', 5, -1)", "items of 1"),
        ("INSERT INTO counter (app, name, home, value) VALUES (2, 'callbacks', 0, 1)", "callbacks of 2"),
        ("INSERT INTO counter (app, name, home, value) VALUES (0, 'envelope_bytes', 3, 1)", "envelope_bytes of 0"),
        ("INSERT INTO counter (app, name, home, value) VALUES (1, 'attachment_bytes:s', 0, 9)", "attachment_bytes:% of 1"),
        ("INSERT INTO counter (app, name, home, value) VALUES (1, 'another', 0, 0)", "a number that is not known, of 1"),
    ])
    func `a number that differs from its rows is found`(change: String, finding: String) async throws {
        let (stores, store) = (SQLiteStores.memory, try await StoreFixture(SQLiteStores.memory).sqlite)
        #expect(try await stores.wrongCounters(in: store) == [])
        try await store.run(change)
        #expect(try await stores.wrongCounters(in: store) == [finding])
    }
}
