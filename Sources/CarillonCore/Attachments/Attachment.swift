package import CarillonWire

/// A file that was uploaded for other readers, as the store has it. The content is sealed and has no name here.
package struct Attachment: Equatable, Sendable {
    package var serial: AttachmentSerial
    package var id: AttachmentID
    package var app: AppSerial
    /// Nil if the owner's device has another user now.
    package var owner: AttachmentPrincipal?
    /// The length of the whole file in bytes.
    package var length: Int64
    /// The number of bytes that are durably on disk.
    package var synced: Int64
    package var isComplete: Bool
    /// The expected SHA-256 of the whole file; nil if the uploader sent none.
    package var digest: [UInt8]?
    /// How long the file is kept after it is complete.
    package var lifetimeSeconds: Int64
    package var expiresAt: Timestamp

    package init(
        serial: AttachmentSerial, id: AttachmentID, app: AppSerial, owner: AttachmentPrincipal?, length: Int64,
        synced: Int64,
        isComplete: Bool, digest: [UInt8]?, lifetimeSeconds: Int64, expiresAt: Timestamp
    ) {
        self.serial = serial
        self.id = id
        self.app = app
        self.owner = owner
        self.length = length
        self.synced = synced
        self.isComplete = isComplete
        self.digest = digest
        self.lifetimeSeconds = lifetimeSeconds
        self.expiresAt = expiresAt
    }
}

/// The number of an attachment in the store. A number is never used again.
package struct AttachmentSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// A request to begin an upload.
package struct AttachmentRequest: Sendable {
    package var proposed: AttachmentID
    package var owner: AttachmentUser
    package var length: Int64
    package var digest: [UInt8]?
    package var readers: [AttachmentPrincipal]
    package var lifetimeSeconds: Int64
    /// The hash of the `Idempotency-Key`, and the hash of the request.
    package var idempotency: (key: [UInt8], fingerprint: [UInt8])?
    package var limits: AttachmentLimits

    package init(
        proposed: AttachmentID, owner: AttachmentUser, length: Int64, digest: [UInt8]?, readers: [AttachmentPrincipal],
        lifetimeSeconds: Int64, idempotency: (key: [UInt8], fingerprint: [UInt8])?, limits: AttachmentLimits
    ) {
        self.proposed = proposed
        self.owner = owner
        self.length = length
        self.digest = digest
        self.readers = readers
        self.lifetimeSeconds = lifetimeSeconds
        self.idempotency = idempotency
        self.limits = limits
    }
}

package enum AttachmentAddition: Equatable, Sendable {
    case added(Attachment)
    /// The upload was begun before with the same key.
    case repeated(Attachment)
    /// The key was used for another upload.
    case reused
    case tooManyUploads(limit: Int)
    /// The quota of the user is exceeded.
    case overUser(limit: Int64)
    case overApp(limit: Int64)
    /// The incomplete uploads of the user reserve the maximum already.
    case overReserved(limit: Int64)
    case ownerGone
}

/// Whether an upload may send more bytes.
package enum AttachmentReservation: Equatable, Sendable {
    case reserved
    case overUser(limit: Int64)
    case overApp(limit: Int64)
    case overReserved(limit: Int64)
    /// The upload was removed.
    case gone
}
