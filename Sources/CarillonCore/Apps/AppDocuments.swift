package import CarillonWire
import Synchronization

/// Caches the documents of all apps as values of their features.
///
/// Each use compares the version of the registry with the version at the last reading. If the registry changed, the document is
/// read again, and its value is made again if the document has another version. Every use therefore sees all changes that were
/// returned before it, also changes by other processes.
package final class AppDocuments: Sendable {
    private struct Known {
        /// Nil if there was no document.
        var version: RegistryVersion?
        /// The version of the registry before the document was read.
        var checkedAt: RegistryVersion
        /// A ``Made`` of the type that the feature reads.
        var made: any Sendable
    }

    private struct Made<Value: Sendable>: Sendable {
        var value: Value
    }

    private struct KnownApps {
        var checkedAt: RegistryVersion
        var serials: [AppID: AppSerial]
    }

    private struct State {
        var documents: LRUCache<AppDocument.Key, Known>
        /// The number of times at which values were removed.
        var forgettings = 0
        var apps: [AppDocument.Kind: KnownApps] = [:]
    }

    private let store: any AppDocumentStore
    private let state: Mutex<State>

    /// The minimum number of documents that are cached. At most twice as many are cached. An app in use takes up to six places,
    /// one for each kind that is cached.
    package static let standardCapacity = 20_000

    /// - Parameter capacity: See ``standardCapacity``. The absence of a document counts as a document.
    package init(store: any AppDocumentStore, capacity: Int = AppDocuments.standardCapacity) {
        self.store = store
        state = Mutex(State(documents: LRUCache(capacity: capacity)))
    }

    // MARK: Reading

    /// Returns the value of a document. A feature reads the documents of a kind as values of one type.
    ///
    /// - Parameter make: Makes the value of the document, or of its absence. Errors are not cached.
    package func value<Value: Sendable>(
        of key: AppDocument.Key, _ make: (AppDocument?) throws -> Value
    ) async throws -> Value {
        let present = try await store.registryVersion()
        let (known, forgettings) = state.withLock { ($0.documents[key], $0.forgettings) }
        let made = known?.made as? Made<Value>
        if let known, let made, known.checkedAt >= present { return made.value }
        let document = try await store.document(key)
        let value: Value
        if let known, let made, known.version == document?.version {
            value = made.value
        } else {
            value = try make(document)
        }
        note(Known(version: document?.version, checkedAt: present, made: Made(value: value)), of: key, since: forgettings)
        return value
    }

    /// Caches a reading, unless another reading began later, or values were removed since this one began.
    private func note(_ known: Known, of key: AppDocument.Key, since forgettings: Int) {
        state.withLock { state in
            guard state.forgettings == forgettings else { return }
            if let other = state.documents[key], other.checkedAt > known.checkedAt { return }
            state.documents[key] = known
        }
    }

    /// Reads a document from the store without caching it. This is for documents that are read seldom and have large or secret
    /// contents.
    package func document(_ key: AppDocument.Key) async throws -> AppDocument? { try await store.document(key) }

    /// Whether the value of a document, or of its absence, is cached.
    package func remembers(_ key: AppDocument.Key) -> Bool { state.withLock { $0.documents.contains(key) } }

    /// Returns the apps that have documents of a kind.
    package func apps(with kind: AppDocument.Kind) async throws -> [AppID: AppSerial] {
        let present = try await store.registryVersion()
        if let known = state.withLock({ $0.apps[kind] }), known.checkedAt >= present { return known.serials }
        let apps = try await store.apps(with: kind)
        let serials = Dictionary(apps.map { ($0.id, $0.serial) }) { first, _ in first }
        state.withLock { state in
            if let other = state.apps[kind], other.checkedAt > present { return }
            state.apps[kind] = KnownApps(checkedAt: present, serials: serials)
        }
        return serials
    }

    // MARK: Changing

    /// - Returns: The version of the document; nil if there is no such app, or it was deleted.
    package func put(
        _ bytes: [UInt8], as key: AppDocument.Key, at now: Timestamp
    ) async throws -> RegistryVersion? {
        defer { forget { $0[key] = nil } }
        return try await store.putDocument(bytes, as: key, at: now)
    }

    /// - Returns: Whether there was such a document.
    package func remove(_ key: AppDocument.Key) async throws -> Bool {
        defer { forget { $0[key] = nil } }
        return try await store.removeDocument(key)
    }

    // MARK: Removing

    /// Removes the values of a deleted app, which can contain secrets.
    package func forget(_ app: AppSerial) { forget { $0.removeAll { $0.app == app } } }

    private func forget(_ change: (inout LRUCache<AppDocument.Key, Known>) -> Void) {
        state.withLock { state in
            state.forgettings += 1
            change(&state.documents)
        }
    }
}
