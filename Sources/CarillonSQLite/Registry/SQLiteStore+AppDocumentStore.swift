package import CarillonCore
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: AppDocumentStore {
    package func registryVersion() async throws -> RegistryVersion {
        try await registry.version {
            try await read { db in
                guard let version = try Int64.first(db, "SELECT version FROM registry") else {
                    throw StoreFault(.damaged, "the registry has no version")
                }
                return RegistryVersion(version)
            }
        }
    }

    // The documents of an app are removed with its name, so no document belongs to a deleted app.

    package func document(_ key: AppDocument.Key) async throws -> AppDocument? {
        try await read { db in
            let select = try db.cachedStatement(
                sql: "SELECT bytes, set_at, version FROM app_document WHERE app = ? AND kind = ? AND name = ?")
            return try Row.first(select, [key.app.rawValue, key.kind.rawValue, key.name]) { row in
                AppDocument(
                    key: key, bytes: row.bytes(at: 0) ?? [], setAt: row.timestamp(at: 1), version: RegistryVersion(row[2]))
            }
        }
    }

    package func apps(with kind: AppDocument.Kind) async throws -> [App] {
        try await read { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: "SELECT * FROM app WHERE serial IN (SELECT app FROM app_document WHERE kind = ?) ORDER BY id"),
                arguments: [kind.rawValue]
            ).map(App.init)
        }
    }

    package func putDocument(
        _ bytes: [UInt8], as key: AppDocument.Key, at now: Timestamp
    ) async throws -> RegistryVersion? {
        try await group.run { [registry, memory] db in
            try db.run(
                """
                INSERT INTO app_document (app, kind, name, bytes, version, set_at)
                SELECT app.serial, ?, ?, ?, registry.version + 1, ? FROM app CROSS JOIN registry
                WHERE app.serial = ? AND app.ended_at IS NULL
                ON CONFLICT (app, kind, name) DO UPDATE
                SET bytes = excluded.bytes, version = excluded.version, set_at = excluded.set_at
                """, [key.kind.rawValue, key.name, Data(bytes), now.milliseconds, key.app.rawValue])
            guard db.changesCount == 1 else { return nil }
            memory.pushes.forgetAlertText(changedBy: key)
            return try registry.increment(in: db)
        }
    }

    package func removeDocument(_ key: AppDocument.Key) async throws -> Bool {
        try await group.run { [registry, memory] db in
            try db.run(
                "DELETE FROM app_document WHERE app = ? AND kind = ? AND name = ?",
                [key.app.rawValue, key.kind.rawValue, key.name])
            guard db.changesCount == 1 else { return false }
            memory.pushes.forgetAlertText(changedBy: key)
            try registry.increment(in: db)
            return true
        }
    }
}

extension PushMemory {
    fileprivate func forgetAlertText(changedBy key: AppDocument.Key) {
        if key.kind == .alertText { noteAlertText(of: key.app, nil) }
    }
}
