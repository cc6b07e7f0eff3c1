import CarillonWire
import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Fetches the files of requests and replies, and leaves them with the server.
final class ServiceFiles: Sendable {
    private struct State {
        /// The time in the name of the newest directory.
        var lastTime: Int64 = 0
        /// The number of groups of uploads that are being given up.
        var givingUp = 0
        /// Clears what an earlier run left half done; once.
        var clearing: Task<Void, Never>?
    }

    let attachments: AttachmentStore
    let inbox: MessageFiles
    private let storage: ServiceStorage
    private let removals: ServerRemovals
    private let logger: Logger
    private let state = Mutex(State())

    init(
        attachments: AttachmentStore, inbox: MessageFiles, storage: ServiceStorage, removals: ServerRemovals, logger: Logger
    ) {
        self.attachments = attachments
        self.inbox = inbox
        self.storage = storage
        self.removals = removals
        self.logger = logger
    }

    // MARK: Receiving

    /// Fetches the files of a message into a directory of its own, and says before of each where it will be.
    func receive(
        _ payload: SealedPayload, _ stored: StoredServiceEvent, from peer: ServicePeer, until moment: () async -> Date,
        measuring measure: (_ total: Int64) -> ProgressMeter,
        notifying notify: (_ count: Int, _ files: [(path: String, size: UInt64)]) -> Void
    ) async throws -> [String] {
        guard !payload.files.isEmpty else { return [] }
        try await cleared()
        let directory: String
        if let kept = stored.directory {
            directory = storage.box.store.paths.path(kept)
        } else {
            let time = state.withLock { state in
                state.lastTime = max(state.lastTime + 1, ServiceEngine.now)
                return state.lastTime
            }
            directory = inbox.newDirectory(of: peer.app, at: time)
            let kept = storage.box.store.paths.kept(directory)
            try await storage.storing(until: moment) { try await storage.box.setDirectory(kept, of: stored.number) }
        }
        let paths = payload.files.map { inbox.path(of: $0.path, in: directory) }
        notify(paths.count, zip(paths, payload.files).map { ($0, UInt64($1.manifest.length)) })
        if inbox.isFinished(directory) {
            inbox.normalize(payload.files.map(\.path), in: directory)
            return paths
        }
        let meter = measure(payload.files.reduce(0) { $0 + $1.manifest.sealedLength })
        for file in payload.files {
            try await storage.storing(until: moment) {
                let draft = try await inbox.draft(of: file.path, for: stored.number)
                if inbox.isGathered(file.path, for: stored.number) { return }
                try await fetch(file.manifest, to: draft, meter)
                // A download that an earlier version began ends under the name of that version.
                _ = inbox.isGathered(file.path, for: stored.number)
            }
            meter.finished(file.manifest.sealedLength)
        }
        try await storage.storing(until: moment) { try await inbox.finish(stored.number, as: directory) }
        return paths
    }

    private func fetch(_ manifest: AttachmentManifest, to path: String, _ meter: ProgressMeter? = nil) async throws {
        do {
            let download = try await attachments.download(manifest, to: path)
            let counting = meter?.count(download.progress)
            defer { counting?.cancel() }
            _ = try await withTaskCancellationHandler {
                try await download.value
            } onCancel: {
                // Its bytes stay for the next run.
                Task { await download.pause() }
            }
            storage.health.fileWritten()
        } catch let error as PushError {
            switch error.code {
            case .attachmentGone: throw ServiceError(.attachmentGone, "A file is not to be had any more.")
            case .attachmentDamaged: throw ServiceError(.attachmentDamaged, "A file is not what was sent.")
            case .cancelled: throw CancellationError()
            // It is repeated.
            case .storageUnavailable: throw error
            // Another run would fail as well.
            default: throw ServiceError(error)
            }
        }
    }

    // MARK: Sending

    /// Files that were left with the server, until what names them is stored.
    struct Left {
        var files: [SealedPayload.File] = []
        var uploads: [AttachmentUpload] = []

        var ids: [String] { uploads.map(\.id) }
    }

    /// Leaves files with the server for another device. They are sealed and read when this returns.
    func leave(
        _ paths: [(path: String, name: RelativePath)], for peer: ServicePeer, lifetime: Duration,
        until moment: () async -> Date, measuring measure: (_ total: Int64) -> ProgressMeter, starting: (String) -> Void
    ) async throws -> Left {
        var left = Left()
        guard !paths.isEmpty else { return left }
        do {
            try await cleared()
            let meter = measure(try await Self.sealedLength(of: paths.map(\.path)))
            for (path, name) in paths {
                try Task.checkCancellation()
                starting(path)
                let upload = try await storage.storing(until: moment) {
                    try await attachments.upload(path, for: [.device(peer.device)], lifetime: lifetime)
                }
                storage.health.fileWritten()
                left.uploads.append(upload)
                let manifest = try await storage.storing(until: moment) { try await Self.manifest(of: upload, meter) }
                left.files.append(SealedPayload.File(path: name, manifest: manifest))
            }
            return left
        } catch {
            takeAway(left)
            guard let fault = error as? PushError else { throw error }
            throw fault.code == .cancelled ? CancellationError() : ServiceError(fault)
        }
    }

    /// The bytes that cross for some files.
    static func sealedLength(of paths: [String]) async throws -> Int64 {
        try await DiskFile.work { () throws(PushError) in
            var length: Int64 = 0
            for path in paths { length += ChunkSeal.sealedLength(of: try DiskFile(path, .reading).size()) }
            return length
        }
    }

    /// Waits until the server has a file; an upload that failed goes on where it stopped. When the task is cancelled this ends at once, and the
    /// upload stops where it is.
    static func manifest(
        of upload: AttachmentUpload, _ meter: ProgressMeter? = nil
    ) async throws -> AttachmentManifest {
        try Task.checkCancellation()
        upload.resume()
        let counting = meter?.count(upload.progress)
        defer { counting?.cancel() }
        let manifest = try await withTaskCancellationHandler {
            try await PendingResult<AttachmentManifest>.of { try await upload.value }
        } onCancel: {
            // Ends with what is under way of it.
            Task { await upload.pause() }
        }
        meter?.finished(upload.length)
        return manifest
    }

    /// What names them is stored: the server keeps them until they are fetched.
    func confirm(_ left: Left) async {
        for upload in left.uploads { upload.confirm() }
        await storage.change("confirm uploads") { [box = storage.box] in try await box.unclaim(left.ids) }
    }

    /// Nobody will name them.
    func takeAway(_ left: Left) {
        guard !left.uploads.isEmpty else { return }
        state.withLock { $0.givingUp += 1 }
        // Ends with one request for each, though the task is cancelled that left them. What the server does not hear then, uploads report to it
        // again for ten minutes, and in the next run.
        Task { [weak self, logger] in
            for upload in left.uploads { await Self.cancel(upload, logger) }
            self?.state.withLock { $0.givingUp -= 1 }
        }
    }

    static func cancel<Value: Sendable>(_ transfer: AttachmentTransfer<Value>, _ logger: Logger) async {
        do throws(PushError) {
            try await transfer.cancel()
        } catch {
            logger.warning(
                "cannot give up transfer; retrying at the next start",
                metadata: ["transfer": "\(transfer.id)", "reason": "\(error.message)"])
        }
    }

    /// Whether uploads are being given up, or removed at the server.
    var isRemoving: Bool { state.withLock { $0.givingUp > 0 } || attachments.isRemoving }

    /// Nobody will fetch them: the server need not keep them.
    func removeAttachments(_ ids: [String]) {
        removals.begin(ids.map { "/v1/attachments/\($0)" })
    }

    // MARK: Long payloads

    /// Leaves a payload as a file of its own where it is too long for an envelope.
    func shortened(
        _ payload: SealedPayload, _ id: String, for peer: ServicePeer, lifetime: Duration, left: inout Left,
        until moment: () async -> Date
    ) async throws -> SealedPayload {
        let bytes = payload.bytes
        guard bytes.count > Self.inlineBytes else { return payload }
        guard bytes.count <= SealedPayload.mostBytes else {
            throw ServiceError(.requestTooLarge, "A value has up to \(SealedPayload.mostBytes) bytes.")
        }
        try await cleared()
        let path = inbox.draftOfPayload(id)
        try await storage.storing(until: moment) {
            try await DiskFile.work { () throws(PushError) in
                try DiskFile.makeDirectory(DiskFile.directory(of: path))
                try DiskFile.replace(path, with: Data(bytes))
            }
        }
        defer { inbox.remove(path) }
        do {
            let upload = try await storage.storing(until: moment) {
                try await attachments.upload(path, for: [.device(peer.device)], lifetime: lifetime)
            }
            left.uploads.append(upload)
            return SealedPayload(.attached(try await storage.storing(until: moment) { try await Self.manifest(of: upload) }))
        } catch {
            guard let fault = error as? PushError else { throw error }
            throw fault.code == .cancelled ? CancellationError() : ServiceError(fault)
        }
    }

    /// What fits an envelope, sealed and padded.
    static let inlineBytes = SealedContent.bodyBytes - 512

    /// Reads a sealed payload, wherever it is.
    func payload(_ bytes: [UInt8], _ number: Int64, _ content: SealedContent) async throws -> SealedPayload {
        var payload = try SealedPayload(bytes)
        if case .attached(let manifest) = payload.content {
            try await cleared()
            let path = inbox.draftOfPayload(String(number))
            try await DiskFile.work { [inbox] () throws(PushError) in
                try DiskFile.makeDirectory(DiskFile.directory(of: path))
                inbox.remove(path)
            }
            defer { inbox.remove(path) }
            try await fetch(manifest, to: path)
            let bytes = try await DiskFile.work { () throws(PushError) in
                try DiskFile(path, .reading).read(at: 0, count: SealedPayload.mostBytes)
            }
            payload = try SealedPayload(Array(bytes))
        }
        if case .attached = payload.content {
            throw ServiceError(.serviceParametersInvalid, "A payload is in one attachment, and not in another there.")
        }
        guard payload.files.count == content.files, payload.fileBytes == content.fileBytes else {
            throw ServiceError(.sealInvalid, "The files are not those that were announced.")
        }
        return payload
    }

    // MARK: What a kill leaves

    /// Confirms uploads that something stored names, takes away those that nothing goes on with, and ends downloads that nothing waits for.
    func clear() async {
        let task = state.withLock { state in
            // Ends when all is cleared, or with the run.
            let task = state.clearing ?? Task { await clearAway() }
            state.clearing = task
            return task
        }
        await task.value
    }

    /// Waits until that is done, and no longer once the task is cancelled.
    func cleared() async throws { try await PendingResult<Void>.of { await self.clear() } }

    /// The run ends: clearing does not wait for the storage any more. What is left is cleared by the next process.
    func stopClearing() { state.withLock(\.clearing)?.cancel() }

    /// The device has another user: all messages of the former user are removed.
    func removeAll() {
        inbox.removeAll()
        // The former task is taken out of the lock, so that nothing is released inside it.
        _ = state.withLock { $0.clearing.take() }
    }

    private func clearAway() async {
        do {
            let claimed = try await storage.storing { try await storage.box.claims() }
            let drafted = try await storage.storing { try await storage.box.draftUploads() }
            let uploads = try await storage.storing { try attachments.uploads() }
            takeAway(Left(uploads: uploads.filter { !claimed.contains($0.id) && !drafted.contains($0.id) }))
            var failed: Set<String> = []
            for upload in uploads where claimed.contains(upload.id) && !drafted.contains(upload.id) {
                do {
                    _ = try await upload.value
                    upload.confirm()
                } catch {
                    failed.insert(upload.id)
                    logger.warning(
                        "cannot confirm upload; retrying at the next start",
                        metadata: ["upload": "\(upload.id)", "reason": "\(error)"])
                }
            }
            let confirmed = Array(claimed.subtracting(failed))
            await storage.change("confirm uploads") { [box = storage.box] in try await box.unclaim(confirmed) }
            let numbers = try await storage.storing { try await storage.box.eventNumbers() }
            inbox.sweep(except: numbers)
            for (download, path) in try attachments.downloadsWithPaths() where !inbox.isGathered(path, for: numbers) {
                await Self.cancel(download, logger)
            }
        } catch {
            logger.error("cannot clear files of earlier runs; retrying at the next start", metadata: ["reason": "\(error)"])
        }
    }
}

extension ServiceError {
    /// What a fault of a file, the storage or the server is to a service.
    init(_ fault: PushError) {
        switch (fault.code, fault.serverCode) {
        case (.fileInvalid, _): self.init(.attachmentMissing, fault.message)
        case (.attachmentChanged, _): self.init(.attachmentChanged, fault.message)
        case (_, ErrorCode.attachmentTooLarge.rawValue?): self.init(.attachmentTooLarge, fault.message)
        case (_, ErrorCode.quotaExceeded.rawValue?): self.init(.quotaExceeded, fault.message)
        case (.attachmentGone, _): self.init(.attachmentGone, fault.message)
        case (.attachmentDamaged, _): self.init(.attachmentDamaged, fault.message)
        case (.storageUnavailable, _): self.init(.storageUnavailable, fault.message)
        default: self.init(.serviceFailed, fault.message)
        }
    }
}
