package import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: KeyStore {
    package func insertKey(_ key: AccessKey) async throws -> Bool {
        try await group.run { [registry] db in
            var app: Int64?
            if let id = key.app {
                app = try Int64.fetchOne(db, sql: "SELECT serial FROM app WHERE id = ?", arguments: [id.text])
                if app == nil { return false }
            }
            try db.execute(
                sql: "INSERT INTO access_key (id, role, app, name, secret_hash, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                arguments: [
                    Int64(bitPattern: key.id.value), key.role.rawValue, app, key.name, Data(key.secretHash.bytes),
                    key.createdAt.milliseconds,
                ])
            try registry.increment(in: db)
            return true
        }
    }

    package func key(_ id: KeyID) async throws -> AccessKey? {
        try await read { db in
            let select = try db.cachedStatement(sql: Self.selectKeys + " WHERE access_key.id = ?")
            return try Row.first(select, [Int64(bitPattern: id.value)], AccessKey.init)
        }
    }

    package func keys() async throws -> [AccessKey] {
        try await read { db in
            try Row.fetchAll(db, sql: Self.selectKeys + " ORDER BY access_key.created_at, access_key.id")
                .map(AccessKey.init)
        }
    }

    package func revokeKey(_ id: KeyID, at now: Timestamp) async throws -> Bool {
        try await group.run { [registry] db in
            try db.execute(
                sql: "UPDATE access_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
                arguments: [now.milliseconds, Int64(bitPattern: id.value)])
            guard db.changesCount == 1 else { return false }
            try db.execute(
                sql: """
                    DELETE FROM access_key WHERE id IN (SELECT id FROM (
                        SELECT key.id, row_number() OVER (ORDER BY key.revoked_at DESC, key.id) AS place
                        FROM access_key AS key JOIN access_key AS other
                            ON key.app = other.app OR (key.app IS NULL AND other.app IS NULL)
                        WHERE other.id = ? AND key.revoked_at IS NOT NULL) AS revoked WHERE place > ?)
                    """, arguments: [Int64(bitPattern: id.value), AccessKey.revokedKept])
            try registry.increment(in: db)
            return true
        }
    }

    package func rotateKey(
        _ id: KeyID, to hash: SecretHash, earlierValidUntil: Timestamp, servedUntil: Int64
    ) async throws -> Bool {
        try await group.run { [registry] db in
            try db.execute(
                sql: """
                    UPDATE access_key SET earlier_hash = secret_hash, earlier_until = ?, earlier_served = ?, secret_hash = ?
                    WHERE id = ? AND revoked_at IS NULL
                    """,
                arguments: [
                    earlierValidUntil.milliseconds, servedUntil, Data(hash.bytes), Int64(bitPattern: id.value),
                ])
            guard db.changesCount == 1 else { return false }
            try registry.increment(in: db)
            return true
        }
    }

    private static let selectKeys =
        "SELECT access_key.*, app.id AS app_id FROM access_key LEFT JOIN app ON app.serial = access_key.app"
}

extension AccessKey {
    init(row: Row) throws {
        guard let role = KeyRole(rawValue: row["role"]), let hash = row.bytes("secret_hash") else {
            throw StoreFault(.unavailable, "a key's row cannot be read")
        }
        var earlier: EarlierSecret?
        if let hash = row.bytes("earlier_hash") {
            earlier = EarlierSecret(
                hash: SecretHash(stored: hash), validUntil: row.timestamp("earlier_until"),
                servedUntil: row["earlier_served"])
        }
        self.init(
            id: KeyID(UInt64(bitPattern: row["id"])),
            role: role,
            app: (row["app_id"] as String?).flatMap { AppID($0) },
            name: row["name"],
            secretHash: SecretHash(stored: hash),
            earlier: earlier,
            createdAt: row.timestamp("created_at"),
            revokedAt: (row["revoked_at"] as Int64?).map(Timestamp.init(milliseconds:)))
    }
}
