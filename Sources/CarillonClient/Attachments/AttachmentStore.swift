import CarillonBasics
import CarillonWire
public import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Sends files of any size to others through a Carillon server, and fetches them: sealed with a key that the server never sees, in as many
/// parts as the network makes of it.
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
/// Transfers outlive the process: ``uploads()`` and ``downloads()`` have those that are not done. Apple's background transfers are not
/// used: while the app is suspended, nothing moves. ``PushClient/handleWake(within:)`` waits for transfers that go on, up to its limit.
public final class AttachmentStore: Sendable {
    /// What a program needs that is no device: a backend with a sender key.
    public struct Configuration: Sendable {
        /// The server's base address, `https://push.example.com`. A path is kept.
        public var server: String
        /// A sender key, or a device's credential. It is never logged.
        public var bearer: String
        /// Where transfers are kept that are not done, made if it does not exist. It belongs to one store at a time.
        public var directory: String
        /// A file of certificates to trust instead of the system's, in PEM form or of one certificate in DER.
        public var trustRootsPath: String?
        /// How long attempts wait for each other.
        public var backOff: PushClient.BackOff
        /// How long an attempt to connect may take.
        public var connectTimeout: Duration
        /// The logger of the store; by default one for warnings, as ``PushClient/Configuration/logger``. No secret and no name of a file is
        /// logged.
        public var logger: Logger

        /// Makes a configuration; what is not given has its default.
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

    /// The transfers that go on.
    let activity = WakeActivity()
    private let folder: TransferFolder
    private let server: TransferAPI
    private let lock = Mutex<TransferLock?>(nil)
    private let known = Mutex(Known())
    /// The removals of uploads that were given up, by id.
    private let removals = Mutex<[String: Task<Void, Never>]>([:])

    private struct Known {
        var uploads: [String: AttachmentUpload] = [:]
        var downloads: [String: AttachmentDownload] = [:]
    }

    /// - Throws: ``PushError`` with ``PushError/Code/configurationInvalid``, ``PushError/Code/storageInUse`` or another of storage.
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

    /// - Parameter storage: The storage directory, which may be moved; without one, the directory of the transfers.
    init(directory: String, storage: String? = nil, server: TransferAPI) {
        folder = TransferFolder(path: directory, storage: storage)
        self.server = server
    }

    deinit {
        for removal in removals.withLock({ $0 }).values { removal.cancel() }
    }

    /// Opens the directory when it is first used.
    private func open() throws(PushError) {
        let isFirst = try lock.withLock { lock throws(PushError) in
            if lock != nil { return false }
            try DiskFile.makeDirectory(folder.path)
            lock = try TransferLock(folder.path)
            folder.sweep()
            return true
        }
        guard isFirst else { return }
        // What the server was not notified of before.
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

    /// Seals a file, and begins to send it. What is read of it is read before this returns: it may be changed or removed then. A file that
    /// changes while it is read is read once more from its beginning.
    ///
    /// - Parameters:
    ///   - path: A file; of any size that the server takes, also of none.
    ///   - readers: Who may fetch it: 1 to 32. The server removes it when all of them have it.
    ///   - lifetime: How long the server keeps it once it is whole: a minute to 28 days.
    ///   - moves: Whether the file is given away: it is removed when the sealed copy is on disk.
    /// - Returns: The upload; its manifest is what readers need.
    /// - Throws: ``PushError`` with ``PushError/Code/fileInvalid``, with ``PushError/Code/attachmentChanged`` where the file changed the
    ///   second time, too, or one of storage.
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

    /// Those that are not done or not confirmed, of earlier runs, too.
    public func uploads() throws(PushError) -> [AttachmentUpload] {
        try open()
        var found: [AttachmentUpload] = []
        for id in folder.ids(.upload) {
            let known = try folder.read(TransferFolder.UploadState.self, .upload, of: id)
            guard let state = known, state.isGivenUp != true else { continue }
            // Nobody can fetch it any more.
            if let manifest = state.manifest, manifest.expiresAt < .now {
                folder.remove(.upload, id)
            } else {
                found.append(transfer(id, state))
            }
        }
        return found
    }

    private func transfer(_ id: String, _ state: TransferFolder.UploadState) -> AttachmentUpload {
        known.withLock { known in
            if let upload = known.uploads[id] { return upload }
            let run = UploadRun(id: id, folder: folder, server: server)
            // The directory is the store's as long as a transfer of it goes on.
            let lock = lock.withLock(\.self)
            let upload = AttachmentUpload(
                id: id, length: ChunkSeal.sealedLength(of: state.length), activity: activity
            ) { [weak self] moved in
                defer {
                    if !run.isThere { self?.known.withLock { $0.uploads[id] = nil } }
                    withExtendedLifetime(lock) {}
                }
                return try await run.run(moved)
            } giveUp: { [weak self] () async throws(PushError) in
                self?.known.withLock { $0.uploads[id] = nil }
                guard let state = try run.giveUp() else { return }
                if let first = self?.remove(run, state) {
                    // A caller that is cancelled waits no more.
                    _ = try? await first.value
                } else {
                    await run.removeOnce(state)
                }
            } forget: { [weak self] in
                self?.known.withLock { $0.uploads[id] = nil }
                run.forget()
            }
            known.uploads[id] = upload
            return upload
        }
    }

    /// Has the server remove an upload that was given up. The next run goes on with what is not removed.
    ///
    /// - Returns: What comes with the end of the first attempt.
    @discardableResult
    private func remove(_ run: UploadRun, _ state: TransferFolder.UploadState) -> PendingResult<Void> {
        let first = PendingResult<Void>()
        removals.withLock { removals in
            guard removals[run.id] == nil else {
                first.resume(.success(()))
                return
            }
            // Ends with the server's answer, after ten minutes, or with the store.
            removals[run.id] = Task { [weak self] in
                await run.remove(state, first: first)
                self?.removed(run.id)
            }
        }
        return first
    }

    private func removed(_ id: String) {
        // The task is taken out of the lock, so that nothing is released inside it.
        _ = removals.withLock { $0.removeValue(forKey: id) }
    }

    /// Whether the server is being asked to remove uploads.
    var isRemoving: Bool { removals.withLock { !$0.isEmpty } }

    // MARK: Downloads

    /// Begins to fetch an attachment, and to open it as it comes. The file has its name when all of it proved right, and not before; until
    /// then it grows beside it, under a name with a dot.
    ///
    /// - Parameters:
    ///   - manifest: From whoever sent it.
    ///   - path: Where it is to be put: nothing may be there.
    /// - Throws: ``PushError`` with ``PushError/Code/manifestInvalid`` or ``PushError/Code/fileExists``, or one of storage.
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

    /// Those that are not done, of earlier runs, too.
    public func downloads() throws(PushError) -> [AttachmentDownload] { try downloadsWithPaths().map(\.download) }

    /// The same, with where each is to be put.
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
        return known.withLock { known in
            if let download = known.downloads[id] { return download }
            let run = DownloadRun(state: state, folder: folder, server: server)
            let lock = lock.withLock(\.self)
            let download = AttachmentDownload(
                id: id, length: state.manifest.sealedLength, activity: activity
            ) { [weak self] moved in
                defer {
                    if !run.isThere { self?.known.withLock { $0.downloads[id] = nil } }
                    withExtendedLifetime(lock) {}
                }
                return try await run.run(moved)
            } giveUp: { [weak self] () async throws(PushError) in
                self?.known.withLock { $0.downloads[id] = nil }
                run.giveUp()
            } forget: {
            }
            known.downloads[id] = download
            return download
        }
    }
}
