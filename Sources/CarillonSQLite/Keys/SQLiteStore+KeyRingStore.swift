package import CarillonCore
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: KeyRingStore {
    package func keyRing() async throws -> [StoredTokenKey] { try await read(Self.keyRing) }

    package func replaceKeyRing(_ before: [StoredTokenKey], with after: [StoredTokenKey]) async throws -> Bool {
        let isDone = try await group.run { [registry] db in
            guard try Self.keyRing(in: db) == before else { return false }
            // The former keys must be erased from the file.
            let setting = try Int.fetchOne(db, sql: "PRAGMA secure_delete") ?? 0
            try db.execute(sql: "PRAGMA secure_delete = ON")
            defer { try? db.execute(sql: "PRAGMA secure_delete = \(setting)") }
            try db.run("DELETE FROM token_key")
            // The first key is the newest.
            for (age, key) in after.enumerated() {
                try db.run(
                    "INSERT INTO token_key (id, bytes, is_wrapped, created_at) VALUES (?, ?, ?, ?)",
                    [key.id, Data(key.bytes), key.isWrapped, after.count - age])
            }
            try registry.increment(in: db)
            return true
        }
        if isDone, directory != nil {
            try await database.barrierWriteWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
        }
        return isDone
    }

    private static func keyRing(in db: Database) throws -> [StoredTokenKey] {
        try Row.fetchAll(db, sql: "SELECT * FROM token_key ORDER BY created_at DESC, id DESC").map { row in
            StoredTokenKey(id: row["id"], bytes: row.bytes("bytes") ?? [], isWrapped: row["is_wrapped"])
        }
    }
}
