import CarillonCore
import GRDB
import Synchronization

/// Caches the version of the registry, so that a comparison runs no statement.
///
/// The store has one writer. It is therefore enough to clear the cached version with each commit that changes it.
final class RegistryMemory: Sendable {
    private struct State {
        var version: RegistryVersion?
        /// The number of times at which the version was cleared.
        var changes = 0
    }

    private let state = Mutex(State())

    /// Increments the version in the transaction of a change.
    @discardableResult func increment(in db: Database) throws -> RegistryVersion {
        let update = "UPDATE registry SET version = version + 1 RETURNING version"
        guard let version = try Int64.first(db, update) else {
            throw StoreFault(.damaged, "the registry has no version")
        }
        db.afterNextTransaction { _ in self.forget() }
        return RegistryVersion(version)
    }

    /// Clears the version, so that the next comparison reads it.
    func forget() {
        state.withLock { state in
            state.version = nil
            state.changes += 1
        }
    }

    /// - Parameter read: Reads the version if it is not cached.
    func version(read: () async throws -> RegistryVersion) async throws -> RegistryVersion {
        let (known, changes) = state.withLock { ($0.version, $0.changes) }
        if let known { return known }
        let version = try await read()
        state.withLock { state in
            // A version that was read before a commit can be the version before that commit.
            if state.changes == changes { state.version = version }
        }
        return version
    }
}
