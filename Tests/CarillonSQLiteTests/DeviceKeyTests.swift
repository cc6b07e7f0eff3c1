import CarillonCore
import GRDB
import StoreConformance
import TestStores
import TestSupport
import Testing

@testable import CarillonSQLite

/// The statement that reads the devices of a key, and a file of the last version that had an index of devices by key.
@Suite(.timeLimit(.minutes(5)))
struct DeviceKeyTests {
    @Test func `an index finds the next devices of the app of a key`() async throws {
        let store = try await StoreFixture(SQLiteStores.memory).sqlite
        let app = try StoreFixture.appID
        let traced = try await store.tracing {
            try await store.devices(registeredWith: KeyID(1), of: app, after: nil, limit: 9)
        }
        let select = try #require(traced.statements.first)
        #expect(traced.statements.count == 1)
        let plan = try await store.read { db in
            let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + select)
            statement.setUncheckedArguments([])
            return try Row.fetchAll(statement).map { row in row["detail"] as String }
        }
        #expect(plan.contains { $0.contains("USING INDEX device_of_app (app=? AND rowid>?)") }, "\(plan)")
        #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(plan)")
    }

    @Test func `a file of version 40 keeps the keys of its devices`() async throws {
        let directory = try TemporaryDirectory.make()
        let queue = try DatabaseQueue(path: directory + "/carillon.sqlite")
        try await queue.write { db in
            try Schema.bring(db, to: 40)
            try db.execute(sql: "INSERT INTO app (serial, id, created_at) VALUES (1, 'com.example.app', 1)")
            for (serial, key) in [(1, -1), (2, nil), (3, 5), (4, -1)] as [(Int64, Int64?)] {
                try db.execute(
                    sql: """
                        INSERT INTO device (serial, id, app, credential_hash, created_at, access_key)
                        VALUES (?, randomblob(16), 1, randomblob(32), 1, ?)
                        """, arguments: [serial, key])
            }
        }
        try queue.close()
        let store = try SQLiteStore(directory: directory)
        let found = try await store.devices(
            registeredWith: KeyID(UInt64.max), of: try StoreFixture.appID, after: nil, limit: 9)
        #expect(found == KeyDevices([DeviceSerial(1), DeviceSerial(4)], end: nil))
        try store.close()
    }
}
