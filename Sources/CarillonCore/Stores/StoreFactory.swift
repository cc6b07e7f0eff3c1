/// Opens the stores of one kind, and makes and restores their backups.
///
/// The executable chooses the factory. Nothing else names a kind of store.
package protocol StoreFactory: Sendable {
    /// Opens the store of a data directory. Creates the store if the directory does not contain one.
    ///
    /// - Parameter makesMissing: If false, a directory without a store is refused and is not changed.
    /// - Throws: ``StoreOpenFault``.
    func open(directory: String, makesMissing: Bool, settings: StoreSettings) throws -> OpenedStore

    /// Returns where the store of a data directory keeps the files of attachments.
    func attachmentFiles(of directory: String) -> any AttachmentFiles

    /// Writes a backup of a data directory to a new file. A server may use the directory at the same time.
    ///
    /// The backup contains each change that was answered before the call, and complete attachments. The file appears when it is
    /// complete.
    ///
    /// - Throws: ``StoreOpenFault``. There is no file then.
    func backUp(_ directory: String, to path: String) async throws

    /// Creates a data directory from a backup. The backup is not changed.
    ///
    /// - Parameters:
    ///   - holdsUpdates: Whether all live updates are paused.
    ///   - now: The present time. Updates that have expired by then are not counted.
    /// - Returns: The number of live updates.
    /// - Throws: ``StoreOpenFault``, also if the directory has a store or is in use.
    func restore(_ backup: String, to directory: String, holdsUpdates: Bool, at now: Timestamp) async throws
        -> LiveUpdateCount
}

/// A store that a ``StoreFactory`` opened. The caller that opened the store must close it.
package struct OpenedStore: Sendable {
    package let store: any Store
    private let end: @Sendable () throws -> Void

    /// - Parameter end: Closes the store.
    package init(_ store: any Store, end: @escaping @Sendable () throws -> Void) {
        self.store = store
        self.end = end
    }

    /// Closes the store, so that another process can open it. Calls after this fail.
    ///
    /// - Throws: ``StoreFault`` if the store is closed, but its files must stay together. No change is lost.
    package func close() throws { try end() }
}
