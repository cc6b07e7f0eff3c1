package import CarillonWire
import Synchronization

/// The documents of apps as values of their features, remembered for all of them.
///
/// Each use compares the version of the registry with the version at the last reading. If the registry changed, the document is read
/// again, and its value is made again if the document has another version. Every use therefore sees all changes that were returned
/// before it, whoever made them.
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
        var documents: RecentValues<AppDocument.Key, Known>
        var apps: [AppDocument.Kind: KnownApps] = [:]
    }

    private let store: any AppDocumentStore
    private let state: Mutex<State>

    /// - Parameter capacity: The number of documents that are remembered at least. The absence of a document counts as one.
    package init(store: any AppDocumentStore, capacity: Int = 5000) {
        self.store = store
        state = Mutex(State(documents: RecentValues(capacity: capacity)))
    }

    // MARK: Reading

    /// Returns the value of a document. A feature reads the documents of a kind as values of one type.
    ///
    /// - Parameter make: Makes the value of the document, or of its absence. What it throws is not remembered.
    package func value<Value: Sendable>(
        of key: AppDocument.Key, _ make: (AppDocument?) throws -> Value
    ) async throws -> Value {
        let present = try await store.registryVersion()
        let known = state.withLock { $0.documents[key] }
        let made = known?.made as? Made<Value>
        if let known, let made, known.checkedAt >= present { return made.value }
        let document = try await store.document(key)
        let value: Value
        if let known, let made, known.version == document?.version {
            value = made.value
        } else {
            value = try make(document)
        }
        note(Known(version: document?.version, checkedAt: present, made: Made(value: value)), of: key)
        return value
    }

    /// A reading that began later is kept.
    private func note(_ known: Known, of key: AppDocument.Key) {
        state.withLock { state in
            if let other = state.documents[key], other.checkedAt > known.checkedAt { return }
            state.documents[key] = known
        }
    }

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
        try await store.putDocument(bytes, as: key, at: now)
    }

    /// - Returns: Whether there was such a document.
    package func remove(_ key: AppDocument.Key) async throws -> Bool { try await store.removeDocument(key) }
}
