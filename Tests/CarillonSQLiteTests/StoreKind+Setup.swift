import CarillonCore
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
}
