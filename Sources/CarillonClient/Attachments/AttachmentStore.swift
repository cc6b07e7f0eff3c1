import CarillonBasics
import CarillonWire
public import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Uploads and downloads files of any size through a Carillon server. Each file is sealed with a key that the server does not
/// have. A transfer continues after each lost connection.
///
/// ```swift
/// let upload = try await client.attachments.upload("/photos/pump.jpg", for: [.device(other)])
/// for await bytes in upload.progress { show(bytes, of: upload.length) }
/// let manifest = try await upload.value  // send it to the other, sealed
/// upload.confirm()
///
/// let download = try await client.attachments.download(manifest, to: "/inbox/pump.jpg")
/// let path = try await download.value
/// ```
///
/// Transfers outlive the process: ``uploads()`` and ``downloads()`` return the unfinished ones. Apple's background transfers are
/// not used, so transfers pause while the app is suspended. ``PushClient/handleWake(within:)`` waits for running transfers, up to
/// its limit.
public final class AttachmentStore: Sendable {
    /// The configuration of a store for a program that is not a device, such as a backend with a sender key.
    public struct Configuration: Sendable {
        /// The server's base address, `https://push.example.com`. It can have a path.
        public var server: String
        /// A sender key, or a device credential. It is never logged.
        public var bearer: String
        /// The directory of unfinished transfers. It is created if it does not exist. Only one store can use it at a time.
        public var directory: String
        /// The path of a file of certificates to trust instead of the system's: PEM, or one certificate in DER.
        public var trustRootsPath: String?
        /// The waits between attempts.
        public var backOff: PushClient.BackOff
        /// The time limit of an attempt to connect.
        public var connectTimeout: Duration
        /// The logger of the store. The default is a logger for warnings, as for ``PushClient/Configuration/logger``. Secrets and
        /// file names are not logged.
        public var logger: Logger

        /// Makes a configuration with default values for the parameters that are left out.
        public init(
            server: String, bearer: String, directory: String, trustRootsPath: String? = nil,
            backOff: PushClient.BackOff = .init(), connectTimeout: Duration = .seconds(10),
            logger: Logger? = nil
        ) {
            self.server = server
            self.bearer = bearer
            self.directory = directory
            self.trustRootsPath = trustRootsPath
            self.backOff = backOff
            self.connectTimeout = connectTimeout
            self.logger = logger ?? .forWarnings("carillon.attachments")
        }
    }

    /// The running transfers.
    let activity = WakeActivity()
    private let folder: TransferFolder
    private let server: TransferAPI
    private let lock = Mutex<TransferLock?>(nil)
    private let transfers = Mutex(Transfers())
    /// The running removals of cancelled uploads, by id.
    private let removals = Mutex<[String: Task<Void, Never>]>([:])

    private struct Transfers {
        var uploads: [String: AttachmentUpload] = [:]
        var downloads: [String: AttachmentDownload] = [:]
    }

    /// - Throws: ``PushError`` with ``PushError/Code/configurationInvalid`` or ``PushError/Code/storageInUse``, or an error of
    ///   storage.
    public convenience init(configuration: Configuration) throws(PushError) {
        guard let address = WebAddress(http: configuration.server), !configuration.server.contains("?") else {
            throw PushError(.configurationInvalid, "server: \"\(configuration.server)\" is not an http: or https: address.")
        }
        guard !configuration.bearer.isEmpty, configuration.bearer.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw PushError(.configurationInvalid, "bearer: a key is printable ASCII without spaces, and not empty.")
        }
        let tls = try TrustRoots.context(path: configuration.trustRootsPath)
        let transport = NIOTransport(tls: tls, timeout: configuration.connectTimeout)
        let api = ServerAPI(
            address.text, over: transport, backOff: configuration.backOff,
            failures: FailureNote(logger: configuration.logger))
        self.init(
            directory: AbsolutePath.of(configuration.directory),
            server: TransferAPI(api: api, files: transport) { [bearer = configuration.bearer] in bearer })
        try open()
    }

    /// - Parameter storage: The storage directory, which can be moved; nil if it is the directory of the transfers.
    init(directory: String, storage: String? = nil, server: TransferAPI) {
        folder = TransferFolder(path: directory, storage: storage)
        self.server = server
    }

    deinit {
        for removal in removals.withLock({ $0 }).values { removal.cancel() }
    }

    /// Opens the directory at its first use.
    private func open() throws(PushError) {
        let isFirst = try lock.withLock { lock throws(PushError) in
            if lock != nil { return false }
            try DiskFile.makeDirectory(folder.path)
            lock = try TransferLock(folder.path)
            folder.sweep()
            return true
        }
        guard isFirst else { return }
        // The server was not notified of these downloads and cancelled uploads before.
        for id in folder.ids(.download) {
            try folder.convertPaths(of: id)
            let state = try folder.read(TransferFolder.DownloadState.self, .download, of: id)
            if let state, folder.isNamed(state) { transfer(state).resume() }
        }
        for id in folder.ids(.upload) {
            let state = try folder.read(TransferFolder.UploadState.self, .upload, of: id)
            if let state, state.isGivenUp == true { remove(UploadRun(id: id, folder: folder, server: server), state) }
        }
    }

    // MARK: Uploads

    /// Seals a file, and starts its upload. The method returns when the file is sealed: the file can be changed or removed then.
    /// If the file changes while it is read, it is read once more from its beginning.
    ///
    /// - Parameters:
    ///   - path: The path of the file. The file can be empty; the server limits its size.
    ///   - readers: The readers that may fetch the file: 1 to 32. The server removes the file when all of them have it.
    ///   - lifetime: The time for which the server keeps the complete file: a minute to 28 days.
    ///   - moves: Whether the file is removed when its sealed copy is on disk.
    /// - Returns: The upload. Its value is the manifest, which the readers need.
    /// - Throws: ``PushError`` with ``PushError/Code/fileInvalid``, or with ``PushError/Code/attachmentChanged`` if the file
    ///   changed also while it was read again, or an error of storage.
    public func upload(
        _ path: String, for readers: [AttachmentReader], lifetime: Duration = .seconds(7 * 86_400), moves: Bool = false
    ) async throws(PushError) -> AttachmentUpload {
        activity.began()
        defer { activity.ended() }
        try open()
        guard !readers.isEmpty else {
            throw PushError(.attachmentRefused, "Somebody must be allowed to fetch an attachment.")
        }
        let id = Hexadecimal.encode(Array(ChunkSeal.makeKey().prefix(16)))
        let folder = folder
        let state = try await DiskFile.work { () throws(PushError) in
            do throws(PushError) {
                let (made, key) = try SteadyFile(path: path).seal(to: folder.sealed(id))
                let state = TransferFolder.UploadState(
                    key: key, length: made.length, digest: made.digest, readers: readers.map(\.name),
                    lifetimeSeconds: lifetime.components.seconds)
                try folder.write(state, .upload, of: id)
                if moves { try? FileManager.default.removeItem(atPath: path) }
                return state
            } catch {
                folder.remove(.upload, id)
                throw error
            }
        }
        let upload = transfer(id, state)
        upload.resume()
        return upload
    }

    /// Returns the uploads that are not complete or not confirmed, including uploads of earlier runs.
    public func uploads() throws(PushError) -> [AttachmentUpload] {
        try open()
        var found: [AttachmentUpload] = []
        for id in folder.ids(.upload) {
            let stored = try folder.read(TransferFolder.UploadState.self, .upload, of: id)
            guard let state = stored, state.isGivenUp != true else { continue }
            // The attachment has expired: no reader can fetch it any more.
            if let manifest = state.manifest, manifest.expiresAt < .now {
                folder.remove(.upload, id)
            } else {
                found.append(transfer(id, state))
            }
        }
        return found
    }

    private func transfer(_ id: String, _ state: TransferFolder.UploadState) -> AttachmentUpload {
        transfers.withLock { transfers in
            if let upload = transfers.uploads[id] { return upload }
            let run = UploadRun(id: id, folder: folder, server: server)
            // The store keeps the lock on the directory while a transfer runs.
            let lock = lock.withLock(\.self)
            let upload = AttachmentUpload(
                id: id, length: ChunkSeal.sealedLength(of: state.length), activity: activity
            ) { [weak self] moved in
                defer {
                    if !run.isUnfinished { self?.transfers.withLock { $0.uploads[id] = nil } }
                    withExtendedLifetime(lock) {}
                }
                return try await run.run(moved)
            } onCancel: { [weak self] () async throws(PushError) in
                self?.transfers.withLock { $0.uploads[id] = nil }
                guard let state = try run.cancel() else { return }
                if let first = self?.remove(run, state) {
                    // If the caller's task is cancelled, the wait ends.
                    _ = try? await first.value
                } else {
                    await run.removeOnce(state)
                }
            } onConfirm: { [weak self] in
                self?.transfers.withLock { $0.uploads[id] = nil }
                run.removeState()
            }
            transfers.uploads[id] = upload
            return upload
        }
    }

    /// Requests the server to remove a cancelled upload. The next run continues a removal that the server did not confirm.
    ///
    /// - Returns: A result that is set at the end of the first attempt.
    @discardableResult
    private func remove(_ run: UploadRun, _ state: TransferFolder.UploadState) -> PendingResult<Void> {
        let first = PendingResult<Void>()
        removals.withLock { removals in
            guard removals[run.id] == nil else {
                first.resume(.success(()))
                return
            }
            // The task ends with the server's answer, after ten minutes, or with the store.
            removals[run.id] = Task { [weak self] in
                await run.remove(state, first: first)
                self?.removed(run.id)
            }
        }
        return first
    }

    private func removed(_ id: String) {
        // The task is released after the mutex is unlocked.
        _ = removals.withLock { $0.removeValue(forKey: id) }
    }

    /// Whether a removal of an upload is running.
    var isRemoving: Bool { removals.withLock { !$0.isEmpty } }

    // MARK: Downloads

    /// Starts the download of an attachment, which is opened while it arrives. The file has its name only when all of it is
    /// verified. Until then a partial file is beside it, with a name that begins with a dot.
    ///
    /// - Parameters:
    ///   - manifest: The manifest from the sender.
    ///   - path: The path of the new file. No file may exist there.
    /// - Throws: ``PushError`` with ``PushError/Code/manifestInvalid`` or ``PushError/Code/fileExists``, or an error of
    ///   storage.
    public func download(
        _ manifest: AttachmentManifest, to path: String
    ) async throws(PushError) -> AttachmentDownload {
        activity.began()
        defer { activity.ended() }
        try open()
        guard manifest.isPossible else { throw PushError(.manifestInvalid, "The manifest of the attachment is none.") }
        let (folder, id) = (folder, manifest.id)
        let state = try await DiskFile.work { () throws(PushError) in
            if let state = try folder.read(TransferFolder.DownloadState.self, .download, of: id) {
                guard state.path == folder.paths.path(folder.paths.kept(path)), state.manifest == manifest else {
                    throw PushError(.fileExists, "The attachment is being fetched already, to \(state.path).")
                }
                return state
            }
            guard !FileManager.default.fileExists(atPath: path) else {
                throw PushError(.fileExists, "\(path) is there already; it was left as it is.")
            }
            let state = TransferFolder.DownloadState(manifest: manifest, path: path)
            try folder.write(state, .download, of: id)
            return state
        }
        let download = transfer(state)
        download.resume()
        return download
    }

    /// Returns the downloads that are not complete, including downloads of earlier runs.
    public func downloads() throws(PushError) -> [AttachmentDownload] { try downloadsWithPaths().map(\.download) }

    /// Returns the downloads that are not complete, with the path of each file.
    func downloadsWithPaths() throws(PushError) -> [(download: AttachmentDownload, path: String)] {
        try open()
        var found: [(download: AttachmentDownload, path: String)] = []
        for id in folder.ids(.download) {
            let state = try folder.read(TransferFolder.DownloadState.self, .download, of: id)
            if let state, !folder.isNamed(state) { found.append((transfer(state), state.path)) }
        }
        return found
    }

    private func transfer(_ state: TransferFolder.DownloadState) -> AttachmentDownload {
        let id = state.manifest.id
        return transfers.withLock { transfers in
            if let download = transfers.downloads[id] { return download }
            let run = DownloadRun(state: state, folder: folder, server: server)
            let lock = lock.withLock(\.self)
            let download = AttachmentDownload(
                id: id, length: state.manifest.sealedLength, activity: activity
            ) { [weak self] moved in
                defer {
                    if !run.isUnfinished { self?.transfers.withLock { $0.downloads[id] = nil } }
                    withExtendedLifetime(lock) {}
                }
                return try await run.run(moved)
            } onCancel: { [weak self] () async throws(PushError) in
                self?.transfers.withLock { $0.downloads[id] = nil }
                run.cancel()
            } onConfirm: {
            }
            transfers.downloads[id] = download
            return download
        }
    }
}
