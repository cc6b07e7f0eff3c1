import CarillonCore
import CarillonWire
import GRDB
import StoreConformance

@testable import CarillonSQLite

/// What the conformance suite prepares beyond the contract of stores.
extension StoreKind {
    private func sqlite(_ store: any Store) -> SQLiteStore {
        guard let store = store as? SQLiteStore else { preconditionFailure("a store of another kind") }
        return store
    }

    func setCounts(items: Int, subscriptions: Int, of app: AppSerial, in store: any Store) async throws {
        try await sqlite(store).group.run { db in
            try db.run(
                "UPDATE app SET items = ?, subscriptions = ? WHERE serial = ?", [items, subscriptions, app.rawValue])
        }
    }

    func damageFiring(_ number: Int64, in store: any Store) async throws {
        try await sqlite(store).group.run { db in
            try db.run("UPDATE firing SET targets = x'FFFFFF' WHERE serial = ?", [number])
        }
    }

    func reopenWithPausedUpdates(_ store: any Store, at now: Timestamp) async throws -> (any Store)? {
        let store = sqlite(store)
        guard let directory = store.directory else { return nil }
        try store.close()
        try RestoredUpdates(in: StoreFile(directory: directory).path, at: now).hold()
        return switch self {
        case .memory: nil
        case .file: try SQLiteStore(directory: directory)
        case .moving: try SQLiteStore(directory: directory, indexCapacity: 2)
        }
    }

    func hideUnfinished(of update: UpdateSerial, in store: any Store) async throws {
        try await sqlite(store).group.run { db in
            try db.run("UPDATE audience_update SET is_left_over = 0 WHERE serial = ?", [update.rawValue])
        }
    }
}
