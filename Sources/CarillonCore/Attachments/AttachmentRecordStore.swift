package import CarillonWire

/// Stores the records of attachments. Their bytes are in ``AttachmentFiles``. Methods that write are atomic and durable, as
/// ``Store`` describes.
package protocol AttachmentRecordStore: Sendable {
    /// Begins an upload: checks the idempotency key, the number of uploads and the quotas of the owner and its app
    /// (``AttachmentRules``), and stores the attachment with its reservation, in one transaction. Concurrent calls do not exceed
    /// the limits. Of concurrent calls with the same key, one begins an attachment.
    func addAttachment(_ request: AttachmentRequest, at now: Timestamp) async throws -> AttachmentAddition
    /// Returns an attachment; nil if no attachment has the id. An expired attachment is returned until it is removed.
    func attachment(_ id: AttachmentID) async throws -> Attachment?
    /// Whether a party may fetch an attachment and has not received it. After a change of its user, a device is not a reader of
    /// attachments for the former user.
    func isReader(_ principal: AttachmentPrincipal, of attachment: AttachmentSerial) async throws -> Bool
    /// Reserves the next bytes of an upload, after a check of the whole length, in one transaction. If the quotas have no room
    /// for the length any more, the upload counts only the received bytes.
    ///
    /// - Parameter received: The number of received bytes.
    /// - Returns: ``AttachmentReservation/gone`` also for an upload that is complete.
    func reserve(
        _ attachment: AttachmentSerial, received: Int64, _ limits: AttachmentLimits
    ) async throws -> AttachmentReservation
    /// Returns the name of the quota of a party: one for all devices of a user in an app, one for a device without a user, one
    /// for the senders of an app. Nil if the device or the app was deleted.
    func attachmentQuotaName(of user: AttachmentUser) async throws -> String?
    /// Stores the number of bytes that are on disk, which never decreases, and the expiry of the upload.
    ///
    /// - Returns: False if the upload is complete, was removed, or belongs to a former user of its device.
    func noteSynced(_ attachment: AttachmentSerial, upTo offset: Int64, expiresAt: Timestamp) async throws -> Bool
    /// Marks an upload as complete, and stores the expiry of the attachment. Of concurrent calls, one returns true.
    ///
    /// - Returns: False if the upload is complete, was removed, or belongs to a former user of its device.
    func completeAttachment(_ attachment: AttachmentSerial, expiresAt: Timestamp) async throws -> Bool
    /// Removes an attachment. Returns whether it was stored. Of concurrent calls, one returns true.
    func removeAttachment(_ attachment: AttachmentSerial) async throws -> Bool
    /// Notes that a reader has received an attachment, and removes the attachment with its last reader, in one transaction.
    ///
    /// - Returns: Whether the attachment was removed. Of concurrent calls of its last readers, one returns true.
    func attachmentReceived(_ attachment: AttachmentSerial, by reader: AttachmentPrincipal) async throws -> Bool
    /// Removes up to `limit` attachments in one transaction: expired attachments, attachments of a deleted owner or without a
    /// reader, and unfinished uploads of former users. Attachments that are added at the same time are not affected.
    ///
    /// - Parameters:
    ///   - retention: An attachment expires when both clocks have passed its expiry. Nil removes no expired attachments.
    ///   - unfinishedSeconds: How long an upload is kept after its last byte, by the counter of served seconds.
    /// - Returns: The removed attachments, and whether no more are to be removed.
    func removeEndedAttachments(
        by retention: RetentionTime?, unfinishedSeconds: Int64, limit: Int
    ) async throws -> (removed: [AttachmentID], isDone: Bool)
    /// Returns the ids that are stored, in one read.
    func knownAttachments(_ ids: [AttachmentID]) async throws -> Set<AttachmentID>
}
