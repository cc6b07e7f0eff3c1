import CarillonCore
import CarillonWire
import Synchronization

/// Counts the reads of documents of a store, and fails some of them.
final class DocumentReadings: AppDocumentStore {
    private struct State {
        var lookUps = 0
        var lists = 0
        var fails = false
    }

    private let store: any Store
    private let beforeRemoval: @Sendable () async throws -> Void
    private let beforeLookUp: @Sendable (Int) async throws -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - beforeRemoval: Runs before each removal of a document.
    ///   - beforeLookUp: Runs before each reading of the version, with the number of the reading, from 1 on.
    init(
        _ store: any Store, beforeRemoval: @escaping @Sendable () async throws -> Void = {},
        beforeLookUp: @escaping @Sendable (Int) async throws -> Void = { _ in }
    ) {
        self.store = store
        self.beforeRemoval = beforeRemoval
        self.beforeLookUp = beforeLookUp
    }

    /// The number of readings of the version.
    var lookUps: Int { state.withLock { $0.lookUps } }
    /// The number of readings of the apps with documents of a kind.
    var lists: Int { state.withLock { $0.lists } }

    /// - Parameter fails: Whether the next readings of documents fail.
    func fails(_ fails: Bool) { state.withLock { $0.fails = fails } }

    func registryVersion() async throws -> RegistryVersion {
        let number = state.withLock { state -> Int in
            state.lookUps += 1
            return state.lookUps
        }
        try await beforeLookUp(number)
        return try await store.registryVersion()
    }

    func document(_ key: AppDocument.Key) async throws -> AppDocument? {
        if state.withLock({ $0.fails }) { throw StoreFault(.unavailable, "the document cannot be read") }
        return try await store.document(key)
    }

    func apps(with kind: AppDocument.Kind) async throws -> [App] {
        state.withLock { $0.lists += 1 }
        return try await store.apps(with: kind)
    }

    func putDocument(_ bytes: [UInt8], as key: AppDocument.Key, at now: Timestamp) async throws -> RegistryVersion? {
        try await store.putDocument(bytes, as: key, at: now)
    }

    func removeDocument(_ key: AppDocument.Key) async throws -> Bool {
        try await beforeRemoval()
        return try await store.removeDocument(key)
    }
}
