package import CarillonCore
package import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: GatewayStore {
    package func putCredential(_ credential: GatewayCredential) async throws -> Bool {
        try await group.run { db in
            try db.run(
                """
                INSERT INTO gateway_credential (app, environment, sealed, summary, revision, set_at)
                SELECT serial, ?, ?, ?, 1, ? FROM app WHERE serial = ? AND ended_at IS NULL
                ON CONFLICT (app, environment) DO UPDATE SET sealed = excluded.sealed, summary = excluded.summary,
                    revision = revision + 1, set_at = excluded.set_at
                """,
                [
                    credential.lane.environment.rawValue, Data(credential.sealed), credential.summary,
                    credential.setAt.milliseconds, credential.lane.app.rawValue,
                ])
            return db.changesCount == 1
        }
    }

    package func credentials(of app: AppID?) async throws -> [GatewayCredential] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT app.id, gateway_credential.* FROM gateway_credential
                    JOIN app ON app.serial = gateway_credential.app AND app.ended_at IS NULL
                    WHERE ?1 IS NULL OR app.id = ?1 ORDER BY app.id, environment
                    """,
                arguments: [app?.text]
            ).map(GatewayCredential.init)
        }
    }

    package func removeCredential(of app: AppID, for environment: PushEnvironment) async throws -> PushLane? {
        try await group.run { db in
            let removed = try Int64.first(
                db,
                """
                DELETE FROM gateway_credential WHERE environment = ? AND app =
                    (SELECT serial FROM app WHERE id = ? AND ended_at IS NULL) RETURNING app
                """, [environment.rawValue, app.text])
            return removed.map { PushLane(app: AppSerial($0), environment: environment) }
        }
    }

    package func putAlert(_ document: String?, of app: AppID) async throws -> AppSerial? {
        try await group.run { [memory] db in
            let select = "SELECT serial FROM app WHERE id = ? AND ended_at IS NULL"
            guard let serial = try Int64.first(db, select, [app.text]) else { return nil }
            if let document {
                try db.run("INSERT OR REPLACE INTO app_alert (app, document) VALUES (?, ?)", [serial, document])
            } else {
                try db.run("DELETE FROM app_alert WHERE app = ?", [serial])
            }
            memory.pushes.noteAlertText(of: AppSerial(serial), nil)
            return AppSerial(serial)
        }
    }

    package func alert(of app: AppSerial) async throws -> String? {
        try await read { db in try String.first(db, "SELECT document FROM app_alert WHERE app = ?", [app.rawValue]) }
    }
}

extension GatewayCredential {
    fileprivate init(row: Row) throws {
        guard let app = AppID(row["id"] as String), let environment = PushEnvironment(rawValue: row["environment"]) else {
            throw StoreFault(.unavailable, "an app's credentials cannot be read")
        }
        self.init(
            app: app, lane: PushLane(app: AppSerial(row["app"]), environment: environment),
            sealed: row.bytes("sealed") ?? [], summary: row["summary"], setAt: row.timestamp("set_at"))
    }
}
