package import CarillonCore
package import CarillonWire

/// Removes data by the wall clock, as for a server that was never stopped and whose clock was never set.
extension InboxStore {
    package func sweep(at now: Timestamp, limit: Int) async throws -> Swept {
        try await sweep(at: now, forgetting: .uninterrupted(at: now), limit: limit)
    }
}

extension PushStore {
    package func sweepPushes(at now: Timestamp, limit: Int) async throws -> Bool {
        try await sweepPushes(at: now, forgetting: .uninterrupted(at: now), limit: limit)
    }
}

extension AttachmentRecordStore {
    package func removeEndedAttachments(
        at now: Timestamp, limit: Int
    ) async throws -> (removed: [AttachmentID], isDone: Bool) {
        try await removeEndedAttachments(
            by: .uninterrupted(at: now), unfinishedSeconds: AttachmentLimits().unfinishedSeconds, limit: limit)
    }
}
