import CarillonCore
import TestStores

extension StoreMaker {
    /// Closes a store as a server that ends does, and opens another one over its files. Nil if nothing is stored.
    func restart(_ store: any Store, _ settings: StoreSettings = StoreSettings()) async throws -> (any Store)? {
        guard let place = place(of: store) else { return nil }
        try await close(store)
        return try await open(at: place, settings)
    }

    /// Makes a store of a backup of this one, which stays open. Nil if nothing is kept.
    ///
    /// - Parameter holdsUpdates: Whether all live updates are paused.
    func restored(_ store: any Store, holdsUpdates: Bool = false) async throws -> (any Store)? {
        guard place(of: store) != nil else { return nil }
        let backup = try await backUp(store)
        return try await restore(backup, holdsUpdates: holdsUpdates, at: StoreFixture.start, StoreSettings()).store
    }
}
