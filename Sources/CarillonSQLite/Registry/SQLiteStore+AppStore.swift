package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: AppStore {
    package func createApp(_ id: AppID, at now: Timestamp) async throws -> App? {
        try await group.run { db in
            try db.execute(
                sql: "INSERT INTO app (id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                arguments: [id.text, now.milliseconds])
            guard db.changesCount == 1 else { return nil }
            return App(serial: AppSerial(db.lastInsertedRowID), id: id, createdAt: now)
        }
    }

    package func app(_ id: AppID) async throws -> App? {
        try await read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM app WHERE id = ?", arguments: [id.text]).map(App.init)
        }
    }

    package func apps() async throws -> [App] {
        try await read { db in try Row.fetchAll(db, sql: "SELECT * FROM app ORDER BY id").map(App.init) }
    }

    package func deleteApp(_ id: AppID, at now: Timestamp) async throws -> RemovedDevices? {
        try await changeInboxes { [settings] db, transaction in
            guard let app = try Int64.fetchOne(db, sql: "SELECT serial FROM app WHERE id = ?", arguments: [id.text]) else {
                return nil
            }
            let devices = try Int64.fetchAll(db, sql: "SELECT serial FROM device WHERE app = ?", arguments: [app])
            let channels = try Int64.fetchAll(
                db, sql: "SELECT serial FROM channel WHERE device IN (SELECT serial FROM device WHERE app = ?)",
                arguments: [app])
            for device in devices {
                try transaction.endAll(of: DeviceSerial(device), at: now)
            }
            try WatchTransaction(db).channelsEnd(
                "device IN (SELECT serial FROM device WHERE app = ?)", [app], because: .appDeleted, at: now,
                limits: settings.callbacks)
            try db.execute(sql: "DELETE FROM app WHERE serial = ?", arguments: [app])
            return RemovedDevices(devices: devices.map(DeviceSerial.init), channels: channels.map(ChannelSerial.init))
        }
    }
}

extension App {
    init(row: Row) throws {
        guard let id = AppID(row["id"] as String) else { throw StoreFault(.unavailable, "an app's name is not one") }
        self.init(serial: AppSerial(row["serial"]), id: id, createdAt: row.timestamp("created_at"))
    }
}
