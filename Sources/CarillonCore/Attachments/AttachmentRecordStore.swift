package import CarillonWire

/// The records of attachments. Their bytes are in ``AttachmentFiles``. Methods that write are atomic and durable, as ``Store`` describes.
package protocol AttachmentRecordStore: Sendable {
    /// Begins an upload: checks the idempotency key, the number of uploads and the allowances of the owner and its app
    /// (``AttachmentRules``), and stores the attachment with what it reserves, in one transaction. Calls at once do not exceed the
    /// limits, and one of those with the same key begins an attachment.
    func addAttachment(_ request: AttachmentRequest, at now: Timestamp) async throws -> AttachmentAddition
    /// Returns an attachment; nil if there is none. An expired attachment is there until it is removed.
    func attachment(_ id: AttachmentID) async throws -> Attachment?
    /// Whether a party may fetch an attachment and has not received it. A device whose user has changed is not a reader of what was for
    /// the former user.
    func isReader(_ party: Party, of attachment: AttachmentSerial) async throws -> Bool
    /// Reserves what an upload may bring next, after a check of the whole length, in one transaction. If the length has no room any
    /// more, the upload counts only what it has brought.
    ///
    /// - Parameter received: The number of bytes that it has brought.
    /// - Returns: ``AttachmentReservation/gone`` also for an upload that is complete.
    func reserve(
        _ attachment: AttachmentSerial, received: Int64, _ limits: AttachmentLimits
    ) async throws -> AttachmentReservation
    /// Returns the name of the share that a party uses: one for all devices of a user in an app, one for a device without a user, one for
    /// the senders of an app. Nil if the device or the app is gone.
    func attachmentShare(of user: AttachmentUser) async throws -> String?
    /// Stores the number of bytes that are on disk, which never goes back, and when the upload expires.
    ///
    /// - Returns: False if the upload is complete, was removed, or belongs to a former user of its device.
    func noteSynced(_ attachment: AttachmentSerial, upTo offset: Int64, expiresAt: Timestamp) async throws -> Bool
    /// Marks an upload as complete, and stores when the attachment expires. Of calls at once, one returns true.
    ///
    /// - Returns: False if the upload is complete, was removed, or belongs to a former user of its device.
    func completeAttachment(_ attachment: AttachmentSerial, expiresAt: Timestamp) async throws -> Bool
    /// Removes an attachment. Returns whether it was there; of calls at once, one returns true.
    func removeAttachment(_ attachment: AttachmentSerial) async throws -> Bool
    /// Notes that a reader has received an attachment, and removes the attachment with its last reader, in one transaction.
    ///
    /// - Returns: Whether the attachment was removed. Of the calls of its last readers at once, one returns true.
    func attachmentReceived(_ attachment: AttachmentSerial, by reader: Party) async throws -> Bool
    /// Removes up to `limit` attachments in one transaction: expired ones, those of a deleted owner or without a reader, and unfinished
    /// uploads of former users. What is added at the same time is not affected.
    ///
    /// - Parameters:
    ///   - retention: An attachment expires by both clocks. Nil removes nothing that has expired.
    ///   - unfinishedSeconds: How long an upload is kept after its last byte, by the counter of served seconds.
    /// - Returns: The removed attachments, and whether none is left to be removed.
    func removeEndedAttachments(
        by retention: RetentionTime?, unfinishedSeconds: Int64, limit: Int
    ) async throws -> (removed: [AttachmentID], isDone: Bool)
    /// Returns those of the ids that are stored, in one read.
    func knownAttachments(_ ids: [AttachmentID]) async throws -> Set<AttachmentID>
}
