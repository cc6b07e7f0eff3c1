package import CarillonWire

/// What is known of attachments. Their bytes are in ``AttachmentFiles``.
package protocol AttachmentRecordStore: Sendable {
    /// Begins an upload where its whole length has room in the allowances of its owner and its app, and reserves what it may bring next
    /// (``AttachmentRules``); or says why not.
    func addAttachment(_ wish: AttachmentWish, at now: Timestamp) async throws -> AttachmentAddition
    /// Nil for none. An attachment whose time is over is there until it is removed.
    func attachment(_ id: AttachmentID) async throws -> Attachment?
    /// Whether somebody may fetch it.
    func isReader(_ party: Party, of attachment: AttachmentSerial) async throws -> Bool
    /// An upload is to bring more: checks once more whether its whole length has room, and reserves what it may bring next.
    ///
    /// - Parameter received: How much of it came.
    func reserve(
        _ attachment: AttachmentSerial, received: Int64, _ limits: AttachmentLimits
    ) async throws -> AttachmentReservation
    /// Whose share of transfers and bytes a party uses: that of the device's user, where it has one. Nil when it is gone.
    func attachmentShare(of user: AttachmentUser) async throws -> String?
    /// So much is on disk, and it is kept until then. Answers false when the upload was removed.
    func noteSynced(_ attachment: AttachmentSerial, upTo offset: Int64, expiresAt: Timestamp) async throws -> Bool
    /// It is whole. Answers false when it was removed.
    func completeAttachment(_ attachment: AttachmentSerial, expiresAt: Timestamp) async throws -> Bool
    /// Answers whether it was there.
    func removeAttachment(_ attachment: AttachmentSerial) async throws -> Bool
    /// A reader has it. It is removed with its last reader; answers whether it was.
    func attachmentReceived(_ attachment: AttachmentSerial, by reader: Party) async throws -> Bool
    /// Removes what has expired, and what its owner or its last reader left; answers what it was, and whether that was all.
    ///
    /// - Parameters:
    ///   - retention: Nil removes nothing that has expired.
    ///   - unfinishedSeconds: How long an upload is kept that brings nothing.
    func removeEndedAttachments(
        by retention: RetentionTime?, unfinishedSeconds: Int64, limit: Int
    ) async throws -> (removed: [AttachmentID], isDone: Bool)
    /// Which of some are known.
    func knownAttachments(_ ids: [AttachmentID]) async throws -> Set<AttachmentID>
}
