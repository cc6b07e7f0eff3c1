import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: ServerStore {
    package func serverID(proposing proposed: ServerID) async throws -> ServerID {
        try await group.run { [registry] db in
            if let row = try Row.fetchOne(db, sql: "SELECT id FROM server") { return ServerID(try row.bytes16("id")) }
            try db.execute(sql: "INSERT INTO server (serial, id) VALUES (1, ?)", arguments: [proposed.value.data])
            try registry.increment(in: db)
            return proposed
        }
    }

    package func history(proposing proposed: Int64) async throws -> Int64 {
        try await group.run { [registry] db in
            if let number = try Int64.fetchOne(db, sql: "SELECT number FROM history") { return number }
            try db.execute(sql: "INSERT INTO history (serial, number) VALUES (1, ?)", arguments: [proposed])
            try registry.increment(in: db)
            return proposed
        }
    }

    package func servedSeconds() async throws -> Int64 {
        try await read { db in try Int64.first(db, "SELECT seconds FROM served") ?? 0 }
    }

    package func noteServed(_ seconds: Int64) async throws {
        try await group.run { db in try db.run("UPDATE served SET seconds = ?1 WHERE seconds < ?1", [seconds]) }
    }

    package func claimEpoch() async throws -> Int64 {
        try await group.run { db in
            // After the last sequence of an epoch, positions continue in the next epoch.
            let last = try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(position) FROM (SELECT max(position) AS position FROM envelope
                        UNION ALL SELECT max(position) FROM outcome) AS found
                    """)
            let claimed = try Int64.fetchOne(db, sql: "SELECT epoch FROM home")
            let epoch = max(claimed ?? 0, PositionSource.epoch(of: last ?? 0)) + 1
            try db.execute(
                sql: """
                    INSERT INTO home (serial, epoch) VALUES (1, ?)
                    ON CONFLICT (serial) DO UPDATE SET epoch = excluded.epoch
                    """, arguments: [epoch])
            return epoch
        }
    }
}
