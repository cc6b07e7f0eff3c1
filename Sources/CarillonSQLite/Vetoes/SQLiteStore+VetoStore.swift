package import CarillonCore
package import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: VetoStore {
    package func putVeto(_ veto: StoredVeto) async throws -> Bool {
        try await group.run { db in
            try db.run(
                """
                INSERT INTO app_veto (app, address, secret, set_at)
                SELECT serial, ?, ?, ? FROM app WHERE serial = ? AND ended_at IS NULL
                ON CONFLICT (app) DO UPDATE
                SET address = excluded.address, secret = excluded.secret, set_at = excluded.set_at
                """, [veto.address, Data(veto.sealed), veto.setAt.milliseconds, veto.app.rawValue])
            return db.changesCount == 1
        }
    }

    package func removeVeto(of app: AppSerial) async throws -> Bool {
        try await group.run { db in
            try db.run("DELETE FROM app_veto WHERE app = ?", [app.rawValue])
            return db.changesCount == 1
        }
    }

    package func vetoes() async throws -> [(app: AppID, veto: StoredVeto)] {
        try await read { db in
            let select = try db.cachedStatement(
                sql: """
                    SELECT app.id, app, address, secret, set_at FROM app_veto JOIN app ON app.serial = app
                    WHERE ended_at IS NULL
                    """)
            return try Row.fetchAll(select).compactMap { row in
                guard let app = AppID(row[0] as String) else { return nil }
                let veto = StoredVeto(
                    app: AppSerial(row[1]), address: row[2], sealed: row.bytes(at: 3) ?? [], setAt: row.timestamp(at: 4))
                return (app, veto)
            }
        }
    }
}
