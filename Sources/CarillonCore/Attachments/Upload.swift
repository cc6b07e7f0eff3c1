import CarillonBasics
package import CarillonWire
import Crypto

/// One request that sends bytes of an attachment. Writes the bytes as they arrive, and stores how many are on disk.
///
/// `@unchecked Sendable`: one task uses it at a time, which ``UploadTurns`` ensures.
package final class Upload: @unchecked Sendable {
    package private(set) var attachment: Attachment
    private let file: any GrowingFile
    private let records: any AttachmentRecordStore
    private let files: any AttachmentFiles
    private let limits: AttachmentLimits
    private let time: TimeSource
    private let start: Int64
    /// The offset up to which bytes are reserved.
    private var reservedTo: Int64
    /// The offset after the last written byte.
    package private(set) var offset: Int64
    /// Whether the upload can never become complete, because its length or digest is wrong.
    package private(set) var cannotComplete = false
    /// The system reports only once that bytes did not reach the disk. A later call can succeed even though the bytes are not on
    /// disk.
    private var hasFailed = false
    /// The hash of the request's body, if its sender sent the expected digest.
    private var content: (hash: SHA256, expected: [UInt8])?

    init(
        _ attachment: Attachment, file: any GrowingFile, records: any AttachmentRecordStore, files: any AttachmentFiles,
        limits: AttachmentLimits, time: TimeSource, contentDigest: [UInt8]?
    ) {
        self.attachment = attachment
        self.file = file
        self.records = records
        self.files = files
        self.limits = limits
        self.time = time
        start = attachment.synced
        offset = attachment.synced
        reservedTo = attachment.synced
        content = contentDigest.map { (SHA256(), $0) }
    }

    /// Writes bytes. Returns whether more bytes are durably on disk than before.
    ///
    /// - Throws: ``Refusal``, also if the file would exceed its length. The upload cannot become complete then.
    package func write(_ bytes: any FileBytes) async throws -> Bool {
        guard Int64(bytes.count) <= attachment.length - offset else {
            cannotComplete = true
            throw Refusal(
                .uploadLengthInconsistent,
                "More came than the \(attachment.length) bytes that the upload was begun with; it was removed.")
        }
        if offset + Int64(bytes.count) > reservedTo { try await reserve() }
        try await file.write(bytes, at: offset)
        offset += Int64(bytes.count)
        if content != nil { bytes.withBytes { content?.hash.update(bufferPointer: $0) } }
        guard offset - attachment.synced >= limits.syncBytes, content == nil else { return false }
        try await keep()
        return true
    }

    /// Reserves the next bytes, unless all bytes were received.
    ///
    /// - Throws: ``Refusal`` if the quotas have no room. The received bytes are kept.
    func reserve() async throws {
        guard offset < attachment.length else { return }
        switch try await records.reserve(attachment.serial, received: offset, limits) {
        case .reserved: reservedTo = min(attachment.length, offset + limits.aheadBytes)
        case .overUser(let limit): throw AttachmentRefusals.overUser(limit)
        case .overApp(let limit): throw AttachmentRefusals.overApp(limit)
        case .overReserved(let limit): throw AttachmentRefusals.overReserved(limit)
        case .gone: throw Refusal.attachmentUnknown
        }
    }

    /// Synchronizes the received bytes to the disk. A body whose digest must be checked is kept only after the check.
    package func keep() async throws {
        guard content == nil, !hasFailed, offset > attachment.synced else { return }
        do {
            try await file.sync()
        } catch {
            hasFailed = true
            throw error
        }
        let expiresAt = time.now().adding(seconds: limits.unfinishedSeconds)
        guard try await records.noteSynced(attachment.serial, upTo: offset, expiresAt: expiresAt) else {
            throw Refusal.attachmentUnknown
        }
        attachment.synced = offset
        attachment.expiresAt = expiresAt
        guard try await files.freeBytes() >= limits.freeBytes else { throw Refusal.attachmentStorageFull }
    }

    /// The whole body was received.
    ///
    /// - Throws: ``Refusal`` if the body does not match its digest. Nothing of the body is kept then.
    package func bodyEnded() async throws {
        if let (hash, expected) = content {
            guard Array(hash.finalize()) == expected else {
                offset = start
                throw Refusal(.digestMismatch, "The body is not what its Content-Digest says; nothing of it was kept.")
            }
            content = nil
        }
        try await keep()
    }

    /// The upload was finished by its sender. The attachment can be fetched from now on.
    package func complete() async throws {
        guard offset == attachment.length else {
            throw Refusal(
                .uploadLengthInconsistent,
                "The upload has \(offset) bytes, and was begun with a length of \(attachment.length).")
        }
        if offset == 0 { try await file.sync() }
        if let expected = attachment.digest {
            guard try await files.digest(ofGrowing: attachment.id) == expected else {
                cannotComplete = true
                throw Refusal.wholeDigestMismatch
            }
        }
        try await files.publish(attachment.id)
        let expiresAt = time.now().adding(seconds: attachment.lifetimeSeconds)
        guard try await records.completeAttachment(attachment.serial, expiresAt: expiresAt) else {
            // The upload was removed meanwhile. Without this, the published file would stay.
            try await files.remove([attachment.id])
            throw Refusal.attachmentUnknown
        }
        attachment.isComplete = true
        attachment.expiresAt = expiresAt
    }
}

extension Refusal {
    package static let attachmentUnknown = Refusal(
        .attachmentUnknown, "There is no such attachment, or it is not for you; it may have been fetched, or have expired.")
    package static let attachmentStorageFull = Refusal(
        .attachmentStorageFull, "The server's disk has no room for attachments now.", retryAfterSeconds: 60)
    static let wholeDigestMismatch = Refusal(
        .digestMismatch, "The attachment is not what its Repr-Digest says, and was removed.")
}
