package import CarillonCore

/// Opens a ``SQLiteStore`` in a data directory.
package struct SQLiteStoreFactory: StoreFactory {
    package init() {}

    package func open(directory: String, makesMissing: Bool, settings: StoreSettings) throws -> OpenedStore {
        let store = try SQLiteStore(directory: directory, makesMissing: makesMissing, settings: settings)
        return OpenedStore(store) { try store.close() }
    }

    package func attachmentFiles(of directory: String) -> any AttachmentFiles { AttachmentFolder(in: directory) }

    package func backUp(_ directory: String, to path: String) async throws {
        try await StoreBackup.make(of: directory, at: path)
    }

    package func restore(_ backup: String, to directory: String, holdsUpdates: Bool, at now: Timestamp) async throws
        -> LiveUpdateCount
    {
        try await StoreBackup.restore(backup, to: directory, holdsUpdates: holdsUpdates, at: now)
    }
}
