package import CarillonWire

/// A file that somebody left with the server for others, as the store knows it. What is in it is sealed, and has no name here.
package struct Attachment: Equatable, Sendable {
    package var serial: AttachmentSerial
    package var id: AttachmentID
    package var app: AppSerial
    /// Nil if the owner's device has another user by now.
    package var owner: Party?
    /// Of the whole file, in bytes.
    package var length: Int64
    /// How much of it is on disk for good.
    package var synced: Int64
    package var isComplete: Bool
    /// What the SHA-256 of the whole must be, where the uploader said it.
    package var digest: [UInt8]?
    /// How long it is kept once it is whole.
    package var lifetimeSeconds: Int64
    package var expiresAt: Timestamp

    package init(
        serial: AttachmentSerial, id: AttachmentID, app: AppSerial, owner: Party?, length: Int64, synced: Int64,
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

/// The store's number for an attachment; never used twice.
package struct AttachmentSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

package struct AttachmentLimits: Sendable {
    /// Of one file, in bytes.
    package var fileBytes: Int64 = 2 << 30
    /// Of all that a user uploaded, or a device that has no user.
    package var userBytes: Int64 = 5 << 30
    package var appBytes: Int64 = 50 << 30
    /// What a file takes of an allowance at least: rows and blocks cost, too.
    package var leastCharge: Int64 = 64 << 10
    /// So much an upload that is not whole reserves beyond what came of it.
    package var aheadBytes: Int64 = 64 << 20
    /// What the uploads of one user that are not whole may reserve together: a part of the app's allowance, and that of one upload at least.
    package var reservedOfUser: Int64 { max(appBytes / 20, aheadBytes) }
    /// How many uploads a device may have begun and not ended.
    package var uploadsOfDevice = 4
    /// The same of all senders of an app.
    package var uploadsOfSenders = 64
    /// How many may be brought and fetched at once: in all, by all of an app, by a user's devices, by one device, and by all senders of an
    /// app.
    package var transfers = 1024
    package var transfersOfApp = 512
    package var transfersOfUser = 32
    package var transfersOfDevice = 8
    package var transfersOfSenders = 64
    package var readers = 32
    package var defaultLifetimeSeconds: Int64 = 7 * 86_400
    package var longestLifetimeSeconds: Int64 = 28 * 86_400
    /// How long an upload that is not whole is kept behind its last byte.
    package var unfinishedSeconds: Int64 = 86_400
    /// What must stay free on the disk for everything else.
    package var freeBytes: Int64 = 256 << 20
    /// After so much an upload is brought to the disk, and its offset is noted.
    package var syncBytes: Int64 = 16 << 20

    package init() {}
}

/// An upload that somebody requests to begin.
package struct AttachmentRequest: Sendable {
    package var proposed: AttachmentID
    package var owner: AttachmentUser
    package var length: Int64
    package var digest: [UInt8]?
    package var readers: [Party]
    package var lifetimeSeconds: Int64
    /// The hash of the `Idempotency-Key`, and that of the request.
    package var idempotency: (key: [UInt8], fingerprint: [UInt8])?
    package var limits: AttachmentLimits

    package init(
        proposed: AttachmentID, owner: AttachmentUser, length: Int64, digest: [UInt8]?, readers: [Party],
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
    /// It was begun before, with the same key.
    case repeated(Attachment)
    /// The key was used for another.
    case reused
    case tooManyUploads(limit: Int)
    /// There is no room in the allowance.
    case overUser(limit: Int64)
    case overApp(limit: Int64)
    /// The user's uploads that are not whole reserve as much as they may.
    case overReserved(limit: Int64)
    case ownerGone
}

/// Whether an upload may bring more.
package enum AttachmentReservation: Equatable, Sendable {
    case reserved
    case overUser(limit: Int64)
    case overApp(limit: Int64)
    case overReserved(limit: Int64)
    /// It was removed.
    case gone
}
