import CarillonBasics
import CarillonWire
import Logging
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Downloads the files of requests and replies from the server, and uploads them.
final class ServiceFiles: Sendable {
    private struct State {
        /// The time in the name of the newest directory.
        var lastTime: Int64 = 0
        /// The number of groups of uploads that are being cancelled.
        var cancelling = 0
        /// The task that clears unfinished work of an earlier run; it runs once.
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

    /// Downloads the files of a message into a new directory, and reports the final paths before the downloads begin.
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
                // A download that an earlier version began has its file under the name of that version.
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
                // The received bytes are kept for the next run.
                Task { await download.pause() }
            }
            storage.health.fileWritten()
        } catch let error as PushError {
            switch error.code {
            case .attachmentGone: throw ServiceError(.attachmentGone, "A file is not to be had any more.")
            case .attachmentDamaged: throw ServiceError(.attachmentDamaged, "A file is not what was sent.")
            case .cancelled: throw CancellationError()
            // The caller repeats the operation.
            case .storageUnavailable: throw error
            // A repetition would fail as well.
            default: throw ServiceError(error)
            }
        }
    }

    // MARK: Sending

    /// Files that were uploaded to the server, before the message that names them is stored.
    struct Uploaded {
        var files: [SealedPayload.File] = []
        var uploads: [AttachmentUpload] = []

        var ids: [String] { uploads.map(\.id) }
    }

    /// Uploads files to the server for another device. When this returns, the server has the files.
    func upload(
        _ paths: [(path: String, name: RelativePath)], for peer: ServicePeer, lifetime: Duration,
        until moment: () async -> Date, measuring measure: (_ total: Int64) -> ProgressMeter, starting: (String) -> Void
    ) async throws -> Uploaded {
        var uploaded = Uploaded()
        guard !paths.isEmpty else { return uploaded }
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
                uploaded.uploads.append(upload)
                let manifest = try await storage.storing(until: moment) { try await Self.manifest(of: upload, meter) }
                uploaded.files.append(SealedPayload.File(path: name, manifest: manifest))
            }
            return uploaded
        } catch {
            cancelUploads(uploaded)
            guard let fault = error as? PushError else { throw error }
            throw fault.code == .cancelled ? CancellationError() : ServiceError(fault)
        }
    }

    /// Returns the total length of the sealed files.
    static func sealedLength(of paths: [String]) async throws -> Int64 {
        try await DiskFile.work { () throws(PushError) in
            var length: Int64 = 0
            for path in paths { length += ChunkSeal.sealedLength(of: try DiskFile(path, .reading).size()) }
            return length
        }
    }

    /// Waits until the server has a file. A failed upload continues from its offset. When the task is cancelled, this ends at
    /// once, and the upload stops at its offset.
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
            // The task ends when the upload has stopped.
            Task { await upload.pause() }
        }
        meter?.finished(upload.length)
        return manifest
    }

    /// Confirms uploads whose message is stored. The server keeps the files until they are fetched.
    func confirm(_ uploaded: Uploaded) async {
        for upload in uploaded.uploads { upload.confirm() }
        await storage.change("confirm uploads") { [box = storage.box] in try await box.unclaim(uploaded.ids) }
    }

    /// Cancels uploads that no message will name.
    func cancelUploads(_ uploaded: Uploaded) {
        guard !uploaded.uploads.isEmpty else { return }
        state.withLock { $0.cancelling += 1 }
        // The task ends with one request for each upload, also if the caller's task is cancelled. If the server is not reached,
        // uploads repeat the request for ten minutes, and in the next run.
        Task { [weak self, logger] in
            for upload in uploaded.uploads { await Self.cancel(upload, logger) }
            self?.state.withLock { $0.cancelling -= 1 }
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

    /// Whether uploads are being cancelled, or removed from the server.
    var isRemoving: Bool { state.withLock { $0.cancelling > 0 } || attachments.isRemoving }

    /// Removes attachments from the server that no device will fetch.
    func removeAttachments(_ ids: [String]) {
        removals.begin(ids.map { "/v1/attachments/\($0)" })
    }

    // MARK: Long payloads

    /// Uploads a payload as a separate file if it is too long for an envelope.
    func shortened(
        _ payload: SealedPayload, _ id: String, for peer: ServicePeer, lifetime: Duration, uploaded: inout Uploaded,
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
            uploaded.uploads.append(upload)
            return SealedPayload(.attached(try await storage.storing(until: moment) { try await Self.manifest(of: upload) }))
        } catch {
            guard let fault = error as? PushError else { throw error }
            throw fault.code == .cancelled ? CancellationError() : ServiceError(fault)
        }
    }

    /// The most bytes of a payload that fit into an envelope after sealing and padding.
    static let inlineBytes = SealedContent.bodyBytes - 512

    /// Reads a sealed payload from the envelope or from its attachment.
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

    // MARK: Unfinished work of earlier runs

    /// Confirms uploads that a stored message names, cancels uploads that no draft continues, and cancels downloads of no stored
    /// event.
    func clear() async {
        let task = state.withLock { state in
            // The task ends when the work is cleared, or with the run.
            let task = state.clearing ?? Task { await clearAway() }
            state.clearing = task
            return task
        }
        await task.value
    }

    /// Waits until the work of earlier runs is cleared, or the task is cancelled.
    func cleared() async throws { try await PendingResult<Void>.of { await self.clear() } }

    /// Stops the wait for the storage at the end of the run. The next process clears the rest.
    func stopClearing() { state.withLock(\.clearing)?.cancel() }

    /// Removes all messages of the former user, because the device has another user.
    func removeAll() {
        inbox.removeAll()
        // The former task is returned from the closure, so that it is not released inside the lock.
        _ = state.withLock { $0.clearing.take() }
    }

    private func clearAway() async {
        do {
            let claimed = try await storage.storing { try await storage.box.claims() }
            let drafted = try await storage.storing { try await storage.box.draftUploads() }
            let uploads = try await storage.storing { try attachments.uploads() }
            cancelUploads(Uploaded(uploads: uploads.filter { !claimed.contains($0.id) && !drafted.contains($0.id) }))
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
    /// Makes the error of a service for a fault of a file, the storage or the server.
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
