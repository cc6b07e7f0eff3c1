import CarillonBasics
package import CarillonWire
import Metrics

/// What devices and senders leave with the server for others: begun, brought in parts, fetched in parts, and removed when all who may fetch
/// it have it, when its time is over, or when its owner says so.
package struct Attachments: Sendable {
    package let limits: AttachmentLimits
    private let records: any AttachmentRecordStore
    private let files: any AttachmentFiles
    private let isOwn: @Sendable (Shard) -> Bool
    private let isOpen: @Sendable (AttachmentID) -> Bool
    private let turns = UploadTurns()
    private let transfers: Transfers
    private let time: TimeSource
    private let random: RandomSource

    /// - Parameters:
    ///   - isOwn: Whether the home has a shard.
    ///   - isOpen: Whether work on an upload can begin at the home (``LocalHome/isOpen(_:)``).
    package init(
        records: any AttachmentRecordStore, files: any AttachmentFiles, limits: AttachmentLimits, time: TimeSource,
        random: RandomSource, isOwn: @escaping @Sendable (Shard) -> Bool = { _ in true },
        isOpen: @escaping @Sendable (AttachmentID) -> Bool = { _ in true }
    ) {
        self.records = records
        self.files = files
        self.isOwn = isOwn
        self.isOpen = isOpen
        self.limits = limits
        transfers = Transfers(limits)
        self.time = time
        self.random = random
    }

    /// An upload that was begun, or that the same request began before.
    package func begin(
        _ owner: AttachmentUser, length: Int64, digest: [UInt8]?, readers: [AttachmentPrincipal], lifetimeSeconds: Int64,
        idempotency: (key: [UInt8], fingerprint: [UInt8])?
    ) async throws -> Attachment {
        guard length <= limits.fileBytes else {
            throw Refusal(.attachmentTooLarge, "An attachment must have at most \(limits.fileBytes) bytes.")
        }
        guard try await files.freeBytes() - length >= limits.freeBytes else { throw Refusal.attachmentStorageFull }
        let id = newID()
        // Before its row: what is found without one is swept away.
        try await storing { try await files.create(id) }
        do {
            let request = AttachmentRequest(
                proposed: id, owner: owner, length: length, digest: digest, readers: readers,
                lifetimeSeconds: lifetimeSeconds, idempotency: idempotency, limits: limits)
            let addition = try await records.addAttachment(request, at: time.now())
            switch addition {
            case .added(let attachment):
                begun.increment()
                return attachment
            case .repeated(let attachment):
                try await files.remove([id])
                return attachment
            case .reused:
                throw Refusal(
                    .idempotencyKeyReused, "The \"Idempotency-Key\" was used for another attachment; use a new key.")
            case .tooManyUploads(let limit):
                throw AttachmentRefusals.uploads(
                    Refusal(
                        .uploadsTooMany, "A device can have up to \(limit) unfinished uploads; finish or delete one.",
                        retryAfterSeconds: 10))
            case .overUser(let limit): throw AttachmentRefusals.overUser(limit)
            case .overApp(let limit): throw AttachmentRefusals.overApp(limit)
            case .overReserved(let limit): throw AttachmentRefusals.overReserved(limit)
            case .ownerGone: throw Refusal(.credentialInvalid, "The credential's owner was deleted.")
            }
        } catch {
            try? await files.remove([id])
            throw error
        }
    }

    /// Makes an id in a shard of this home, which has the turns of the upload. A home that has just given all its shards away makes any id.
    private func newID() -> AttachmentID {
        var random = random
        let found = Shard.find(where: { isOwn(Shard(of: $0)) }, making: { AttachmentID.random(using: &random) })
        return found ?? .random(using: &random)
    }

    /// What somebody uploads or has uploaded.
    private func own(_ id: AttachmentID, of owner: AttachmentUser) async throws -> Attachment {
        guard let attachment = try await records.attachment(id), attachment.app == owner.app,
            attachment.owner == owner.principal
        else { throw Refusal.attachmentUnknown }
        return attachment
    }

    /// Runs the body when nobody else works on the upload any more.
    ///
    /// - Throws: ``Refusal`` also if the upload moves to another home.
    private func inTurn<Value>(
        _ id: AttachmentID, _ body: (UploadTurns.Turn) async throws -> Value
    ) async throws -> Value {
        try await turns.take(id) { turn in
            // A move closes the shard, and then ends the turns.
            guard isOpen(id) else { throw Refusal.uploadMoves }
            return try await body(turn)
        }
    }

    /// How far an upload is. A transfer that runs is ended before, so that what is answered can be relied on.
    package func state(_ id: AttachmentID, of owner: AttachmentUser) async throws -> Attachment {
        let attachment = try await own(id, of: owner)
        if attachment.isComplete { return attachment }
        do {
            return try await inTurn(id) { _ in try await own(id, of: owner) }
        } catch let refusal as Refusal where refusal == .uploadTakenOver || refusal == .uploadMoves {
            return try await own(id, of: owner)
        }
    }

    /// Lets the body bring bytes, from the offset on.
    ///
    /// - Parameters:
    ///   - offset: Where the sender is.
    ///   - receive: Writes to the upload; it is cancelled when a newer request takes the upload over. What came is kept, however it ends.
    ///   - isLast: Whether the attachment is whole when the body has ended.
    package func append(
        to id: AttachmentID, of owner: AttachmentUser, at offset: Int64, contentDigest: [UInt8]?, isLast: Bool,
        _ receive: @escaping @Sendable (Upload) async throws -> Void
    ) async throws -> Attachment {
        _ = try await own(id, of: owner)
        let transfer = try transfers.begin(owner, quota: try await quota(of: owner))
        // Its place is taken until then.
        defer { withExtendedLifetime(transfer) {} }
        return try await inTurn(id) { turn in
            let attachment = try await own(id, of: owner)
            guard !attachment.isComplete else {
                // The answer to what completed it was lost.
                if offset == attachment.length, isLast { return attachment }
                throw Refusal(.uploadCompleted, "The upload is already complete.")
            }
            guard offset == attachment.synced else { throw UploadOffsetMismatch(attachment: attachment, provided: offset) }
            guard let file = try await files.openGrowing(id, at: offset) else {
                try await remove(attachment)
                throw Refusal.attachmentUnknown
            }
            let upload = Upload(
                attachment, file: file, records: records, files: files, limits: limits, time: time,
                contentDigest: contentDigest)
            return try await bring(upload, turn, isLast: isLast, receive)
        }
    }

    /// Ends the uploads of attachments in a shard that moves to another home. The senders continue the uploads there.
    package func endUploads(in shard: Shard) async { await turns.end { Shard(of: $0) == shard } }

    private func quota(of user: AttachmentUser) async throws -> String {
        // Whoever is gone has nothing to fetch, and is told so where that is looked up.
        try await records.attachmentQuotaName(of: user) ?? ""
    }

    private func bring(
        _ upload: Upload, _ turn: UploadTurns.Turn, isLast: Bool,
        _ receive: @escaping @Sendable (Upload) async throws -> Void
    ) async throws -> Attachment {
        let start = upload.offset
        defer { bytesReceived.increment(by: upload.offset - start) }
        do {
            try await received(upload, turn, receive)
            try await storing {
                try await upload.bodyEnded()
                if isLast { try await upload.complete() }
            }
            if isLast { completed.increment() }
            return upload.attachment
        } catch {
            if upload.cannotComplete { try await remove(upload.attachment) } else { try? await upload.keep() }
            throw turn.refusal ?? error
        }
    }

    private func received(
        _ upload: Upload, _ turn: UploadTurns.Turn, _ receive: @escaping @Sendable (Upload) async throws -> Void
    ) async throws {
        let task = Task {
            try await storing {
                try await upload.reserve()
                try await receive(upload)
            }
        }
        turn.onTakenOver { task.cancel() }
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    // MARK: Fetching

    /// The file, for whoever may fetch it or brought it, and a place among the transfers: hold it as long as it is read.
    package func open(
        _ id: AttachmentID, for user: AttachmentUser
    ) async throws -> (attachment: Attachment, file: any ReadableFile, transfer: Transfer) {
        let transfer = try transfers.begin(user, quota: try await quota(of: user))
        let attachment = try await fetchable(id, for: user)
        guard let file = try await files.open(id) else { throw Refusal.attachmentUnknown }
        return (attachment, file, transfer)
    }

    package func fetchable(_ id: AttachmentID, for user: AttachmentUser) async throws -> Attachment {
        guard let attachment = try await records.attachment(id), attachment.isComplete,
            try await mayFetch(attachment, user)
        else { throw Refusal.attachmentUnknown }
        return attachment
    }

    private func mayFetch(_ attachment: Attachment, _ user: AttachmentUser) async throws -> Bool {
        if attachment.owner == user.principal, attachment.app == user.app { return true }
        if user.principal == .senders, attachment.app != user.app { return false }
        return try await records.isReader(user.principal, of: attachment.serial)
    }

    // MARK: Ending

    /// The owner wants it no more, or a reader has it.
    package func end(_ id: AttachmentID, by user: AttachmentUser) async throws {
        guard let attachment = try await records.attachment(id) else { throw Refusal.attachmentUnknown }
        if attachment.owner == user.principal, attachment.app == user.app {
            return try await inTurn(id) { _ in try await remove(attachment) }
        }
        guard attachment.isComplete, try await mayFetch(attachment, user) else { throw Refusal.attachmentUnknown }
        if try await records.attachmentReceived(attachment.serial, by: user.principal) {
            ended.increment()
            try await files.remove([id])
        }
    }

    private func remove(_ attachment: Attachment) async throws {
        if try await records.removeAttachment(attachment.serial) { ended.increment() }
        try await files.remove([attachment.id])
    }

    /// Removes what has ended, some at a time. Answers whether that was all.
    ///
    /// - Parameter retention: Nil removes nothing that has expired.
    package func sweep(forgetting retention: RetentionTime?) async throws -> Bool {
        let (removed, isDone) = try await records.removeEndedAttachments(
            by: retention, unfinishedSeconds: limits.unfinishedSeconds, limit: Self.sweptAtOnce)
        ended.increment(by: removed.count)
        try await files.remove(removed)
        return isDone
    }

    private static let sweptAtOnce = 50

    /// Removes a page of the uploads and attachments without a record whose last change was before a moment.
    ///
    /// - Parameter place: The result of the call before; nil for the first page.
    /// - Returns: Nil behind the last page.
    package func removeOrphans(after place: String?, before moment: Timestamp) async throws -> String? {
        let page = try await files.list(after: place, before: moment)
        guard !page.ids.isEmpty else { return page.next }
        let known = try await records.knownAttachments(page.ids)
        let unknown = Set(page.ids).subtracting(known)
        orphans.increment(by: unknown.count)
        try await files.remove(Array(unknown))
        return page.next
    }

    private func storing<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let fault as StoreFault where fault.kind == .full {
            throw Refusal.attachmentStorageFull
        }
    }
}

/// An upload is somewhere else than its sender thinks.
package struct UploadOffsetMismatch: Error {
    package var attachment: Attachment
    package var provided: Int64
}

private let begun = ServerMetric.attachmentsBegun.counter()
private let completed = ServerMetric.attachmentsCompleted.counter()
private let ended = ServerMetric.attachmentsEnded.counter()
private let orphans = ServerMetric.attachmentOrphans.counter()
private let bytesReceived = ServerMetric.attachmentBytesReceived.counter()
