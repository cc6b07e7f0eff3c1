/// Opens the stores of one kind, and makes and restores their backups.
///
/// The executable chooses the factory. Nothing else names a kind of store.
package protocol StoreFactory: Sendable {
    /// Opens the store of a data directory. It makes the store if there is none.
    ///
    /// - Parameter makesMissing: False: a directory without a store is refused, and stays as it is.
    /// - Throws: ``StoreOpenFault``.
    func open(directory: String, makesMissing: Bool, settings: StoreSettings) throws -> OpenedStore

    /// Returns where the store of a data directory keeps the files of attachments.
    func attachmentFiles(of directory: String) -> any AttachmentFiles

    /// Writes a backup of a data directory to a new file. A server may use the directory meanwhile.
    ///
    /// The backup has each change that was answered before the call, and attachments that are complete. The file appears when it is
    /// complete.
    ///
    /// - Throws: ``StoreOpenFault``; there is no file then.
    func backUp(_ directory: String, to path: String) async throws

    /// Makes a data directory of a backup. The backup stays as it is.
    ///
    /// - Parameters:
    ///   - holdsUpdates: Whether all live updates are paused.
    ///   - now: The present time. Updates that have expired by then are not counted.
    /// - Returns: How many live updates there are.
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
