package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: AppStore {
    package func createApp(_ id: AppID, at now: Timestamp) async throws -> App? {
        try await group.run { [registry] db in
            let serials = try Int64.fetchAll(
                db, sql: "INSERT INTO app (id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING serial",
                arguments: [id.text, now.milliseconds])
            guard let serial = serials.first else { return nil }
            let app = App(serial: AppSerial(serial), id: id, createdAt: now)
            try registry.increment(in: db)
            return app
        }
    }

    package func app(_ id: AppID) async throws -> App? {
        try await read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM app WHERE id = ?", arguments: [id.text]).map(App.init)
        }
    }

    package func apps() async throws -> [App] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM app WHERE ended_at IS NULL ORDER BY id").map(App.init)
        }
    }

    package func deleteApp(_ id: AppID, at now: Timestamp) async throws -> Bool {
        try await group.run { [registry, memory] db in
            guard let app = try Int64.fetchOne(db, sql: "SELECT serial FROM app WHERE id = ?", arguments: [id.text]) else {
                return false
            }
            try db.execute(sql: "DELETE FROM access_key WHERE app = ?", arguments: [app])
            try db.execute(sql: "DELETE FROM app_document WHERE app = ?", arguments: [app])
            try AttachmentTable(db).appGone(AppSerial(app))
            memory.pushes.noteAlertText(of: AppSerial(app), nil)
            // No valid app id has this form, so a new app can use the old name.
            try db.execute(
                sql: "UPDATE app SET id = '#' || serial, ended_at = ? WHERE serial = ?", arguments: [now.milliseconds, app])
            try registry.increment(in: db)
            return true
        }
    }
}

extension SQLiteStore: DeletionStore {
    package func continueDeletions(at now: Timestamp, limit: Int) async throws -> DeletionStep {
        try await changeInboxes { [settings] db, transaction in
            try Deletions(db, transaction, settings: settings).next(at: now, limit: limit)
        }
    }
}

extension App {
    init(row: Row) throws {
        guard let id = AppID(row["id"] as String) else {
            throw StoreFault(.unavailable, "the stored name of an app is not valid")
        }
        self.init(serial: AppSerial(row["serial"]), id: id, createdAt: row.timestamp("created_at"))
    }
}
