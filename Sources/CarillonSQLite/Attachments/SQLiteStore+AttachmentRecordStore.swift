package import CarillonCore
package import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: AttachmentRecordStore {
    package func addAttachment(_ request: AttachmentRequest, at now: Timestamp) async throws -> AttachmentAddition {
        try await group.run { db in try AttachmentTable(db).add(request, at: now) }
    }

    package func attachment(_ id: AttachmentID) async throws -> Attachment? {
        try await read { db in try AttachmentTable(db).attachment(id) }
    }

    package func isReader(_ principal: AttachmentPrincipal, of attachment: AttachmentSerial) async throws -> Bool {
        try await read { db in
            try Int64.first(
                db, "SELECT 1 FROM attachment_reader WHERE attachment = ? AND device = ? AND of_user < 2",
                [attachment.rawValue, principal.number]) != nil
        }
    }

    package func reserve(
        _ attachment: AttachmentSerial, received: Int64, _ limits: AttachmentLimits
    ) async throws -> AttachmentReservation {
        try await group.run { db in try AttachmentTable(db).reserve(attachment, received: received, limits) }
    }

    package func attachmentQuotaName(of user: AttachmentUser) async throws -> String? {
        try await read { db in try AttachmentTable(db).allowance(of: user) }
    }

    package func noteSynced(
        _ attachment: AttachmentSerial, upTo offset: Int64, expiresAt: Timestamp
    ) async throws -> Bool {
        try await group.run { db in
            try db.run(
                """
                UPDATE attachment SET synced = CASE WHEN synced < ?1 THEN ?1 ELSE synced END, expires_at = ?2,
                    kept_served = (SELECT seconds FROM served)
                WHERE serial = ?3 AND \(AttachmentTable.isGrowing)
                """,
                [offset, expiresAt.milliseconds, attachment.rawValue])
            return db.changesCount == 1
        }
    }

    package func completeAttachment(_ attachment: AttachmentSerial, expiresAt: Timestamp) async throws -> Bool {
        try await group.run { db in try AttachmentTable(db).complete(attachment, expiresAt: expiresAt) }
    }

    package func removeAttachment(_ attachment: AttachmentSerial) async throws -> Bool {
        try await group.run { db in try AttachmentTable(db).remove(attachment) }
    }

    package func attachmentReceived(_ attachment: AttachmentSerial, by reader: AttachmentPrincipal) async throws -> Bool {
        try await group.run { db in
            try db.run(
                "DELETE FROM attachment_reader WHERE attachment = ? AND device = ?", [attachment.rawValue, reader.number])
            return try AttachmentTable(db).removeIfUnread(attachment)
        }
    }

    package func removeEndedAttachments(
        by retention: RetentionTime?, unfinishedSeconds: Int64, limit: Int
    ) async throws -> (removed: [AttachmentID], isDone: Bool) {
        let isThere = try await read { db in
            let isAnyOfGone = try Int64.first(
                db,
                """
                SELECT EXISTS (SELECT 1 FROM attachment_party_gone) OR \(AttachmentTable.isAnyOfFormerUsers)
                """, [])
            guard isAnyOfGone == 0 else { return true }
            guard let retention else { return false }
            return try AttachmentTable.isAnyExpired(db, by: retention, unfinishedSeconds: unfinishedSeconds)
        }
        guard isThere else { return ([], true) }
        return try await group.run { db in
            let table = AttachmentTable(db)
            var removed =
                try retention.map {
                    try table.removeExpired(by: $0, unfinishedSeconds: unfinishedSeconds, limit: limit)
                } ?? []
            guard removed.count < limit else { return (removed, false) }
            removed += try table.removeOfGone(limit: limit - removed.count)
            guard removed.count < limit else { return (removed, false) }
            removed += try table.removeOfFormerUsers(limit: limit - removed.count)
            let isMore = try Int64.first(
                db,
                """
                SELECT EXISTS (SELECT 1 FROM attachment_party_gone) OR \(AttachmentTable.isAnyOfFormerUsers)
                """, [])
            return (removed, isMore == 0)
        }
    }

    package func knownAttachments(_ ids: [AttachmentID]) async throws -> Set<AttachmentID> {
        try await read { db in
            let select = try db.cachedStatement(sql: "SELECT 1 FROM attachment WHERE id = ?")
            return Set(try ids.filter { try Int64.fetchOne(select, arguments: [Data($0.bytes)]) != nil })
        }
    }
}
