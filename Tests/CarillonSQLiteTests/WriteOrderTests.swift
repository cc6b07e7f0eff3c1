import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// Rows of several homes are written in one order, so that their transactions do not wait for each other in a circle.
@Suite(.timeLimit(.minutes(5)))
struct WriteOrderTests {
    private static let count: Int64 = 12

    /// Returns a value of each row of a table that the work writes, in the order of the writes. A test calls it once.
    ///
    /// - Parameter event: The event of a trigger of SQLite, for example "UPDATE ON app".
    private func written(
        _ event: String, _ value: String, in store: SQLiteStore, _ work: @escaping @Sendable (Database) throws -> Void
    ) async throws -> [Int64] {
        try await store.group.run { db in
            try db.execute(
                sql: """
                    CREATE TEMP TABLE written (place INTEGER PRIMARY KEY, value INTEGER);
                    CREATE TEMP TRIGGER note AFTER \(event) BEGIN INSERT INTO written (value) VALUES (\(value)); END;
                    """)
            try work(db)
            return try Int64.fetchAll(db, sql: "SELECT value FROM written ORDER BY place")
        }
    }

    private func expectOrder(_ values: [Int64]) {
        #expect(values.count == Int(Self.count))
        #expect(values == values.sorted())
    }

    /// Adds apps with a device and a subscription each, beside those of the fixture.
    private func addApps(_ store: SQLiteStore) async throws {
        for number in 101...100 + Self.count {
            try await store.run(
                """
                INSERT INTO app (serial, id, created_at) VALUES (\(number), 'com.example.\(number)', 1);
                INSERT INTO counter (app, name, home, value)
                    VALUES (\(number), 'devices', 0, 1), (\(number), 'subscriptions', 0, 1);
                INSERT INTO device (serial, id, app, credential_hash, created_at)
                    VALUES (\(number), randomblob(16), \(number), randomblob(32), 1);
                INSERT INTO subscription (serial, id, device, app, fields, tags, format, policy, cool_down, items, status,
                    status_at, revision, created_at)
                VALUES (\(number), randomblob(16), \(number), \(number), x'', x'', '{}', 0, 0, 0, 2, 1, 1, 1);
                """)
        }
    }

    @Test func `apps are written in their order when subscriptions are removed`() async throws {
        let store = try await StoreFixture(SQLiteStores.memory).sqlite
        try await addApps(store)
        let apps = try await written("UPDATE ON counter", "new.app", in: store) { db in
            try SubscriptionTable(db).remove("serial > ?", [100])
        }
        expectOrder(apps)
    }

    @Test func `shapes are removed in their order`() async throws {
        let store = try await StoreFixture(SQLiteStores.memory).sqlite
        let applied = (1...Self.count).reversed().map { number in
            AppliedHandOver(number: number, change: .removeShape(number))
        }
        for number in 1...Self.count {
            try await store.run(
                """
                INSERT INTO condition_shape (serial, shape, source) VALUES (\(number), '\(number)', 'x');
                INSERT INTO hand_over (number, shard, kind, content) VALUES (\(number), 1, 2, '');
                """)
        }
        let shapes = try await written("DELETE ON condition_shape", "old.serial", in: store) { db in
            try HandOverTable(db).apply(applied)
        }
        expectOrder(shapes)
    }

    @Test func `totals of attachments are written in the order of apps and quotas`() async throws {
        let store = try await StoreFixture(SQLiteStores.memory).sqlite
        try await addApps(store)
        let totals = (101...100 + Self.count).reversed().reduce(into: AttachmentTotals()) { totals, app in
            totals.add(10, to: "s", of: AppSerial(app))
        }
        let writes = try await written(
            "INSERT ON counter", "new.app * 2 + (new.name <> 'attachment_bytes:')", in: store
        ) { db in
            try AttachmentTable(db).write(totals)
        }
        let apps: [Int64] = (1...Self.count).map { 100 + $0 }
        let expected: [Int64] = apps.flatMap { app -> [Int64] in [app * 2, app * 2 + 1] }
        #expect(writes == expected)
    }

    @Test func `queues of moved pings are written in their order`() async throws {
        let store = try await StoreFixture(SQLiteStores.memory).sqlite
        let device = try #require(try await store.numbers("SELECT serial FROM device").first)
        let start = StoreFixture.start
        let queues = try await written("UPDATE ON work_lane", "new.serial", in: store) { db in
            let table = WorkQueues(db)
            let app = try Int64.first(db, "SELECT serial FROM app") ?? 0
            for number in 1...Self.count {
                try table.add(
                    .init(kind: .ping, subject: number, app: app, device: device, peer: "\(number):80", dueAt: start),
                    at: start)
            }
            try db.execute(sql: "DELETE FROM written")
            let work = try Int64.fetchAll(db, sql: "SELECT serial FROM leased_work ORDER BY serial DESC")
            try table.setDue(work.map { WatchChanges.MovedPing(work: $0, dueAt: start, at: start) })
        }
        expectOrder(queues)
    }
}
