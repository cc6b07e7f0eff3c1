import CarillonCore
import CarillonWire
import GRDB

/// Removes attachments.
extension AttachmentTable {
    /// Removes an attachment. Returns whether it existed.
    func remove(_ serial: AttachmentSerial) throws -> Bool { try !remove("?", [serial.rawValue]).isEmpty }

    /// Removes an attachment without readers. Returns whether it was removed.
    func removeIfUnread(_ serial: AttachmentSerial) throws -> Bool { try !removeUnread(serial.rawValue).isEmpty }

    func removeExpired(by retention: RetentionTime, unfinishedSeconds: Int64, limit: Int) throws -> [AttachmentID] {
        try remove(
            "SELECT serial FROM attachment WHERE \(Self.isExpired) ORDER BY expires_at LIMIT ?",
            Self.expiry(retention, unfinishedSeconds) + [limit])
    }

    static func isAnyExpired(_ db: Database, by retention: RetentionTime, unfinishedSeconds: Int64) throws -> Bool {
        try Int64.first(
            db, "SELECT 1 FROM attachment WHERE \(isExpired) LIMIT 1", expiry(retention, unfinishedSeconds)) != nil
    }

    private static let isExpired = "expires_at <= ? AND kept_served + CASE WHEN is_complete THEN lifetime ELSE ? END <= ?"

    private static func expiry(_ retention: RetentionTime, _ unfinishedSeconds: Int64) -> StatementArguments {
        [retention.now.milliseconds, unfinishedSeconds, retention.cutoff(afterSeconds: 0).served]
    }

    /// Writes a row for the sweeper if a removed device has attachments, or is a reader of some.
    func deviceGone(_ device: DeviceSerial, of app: AppSerial) throws {
        try db.run(
            """
            INSERT INTO attachment_party_gone (app, device)
            SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM attachment WHERE app = ?1 AND device = ?2)
                OR EXISTS (SELECT 1 FROM attachment_reader WHERE device = ?2 AND device > 0)
            ON CONFLICT DO NOTHING
            """, [app.rawValue, device.rawValue])
    }

    /// Writes a row for the sweeper if a deleted app has attachments.
    func appGone(_ app: AppSerial) throws {
        try db.run(
            """
            INSERT INTO attachment_party_gone (app, device)
            SELECT ?1, 0 WHERE EXISTS (SELECT 1 FROM attachment WHERE app = ?1) ON CONFLICT DO NOTHING
            """, [app.rawValue])
    }

    /// Removes attachments of removed devices and deleted apps, and attachments that have no other readers.
    func removeOfGone(limit: Int) throws -> [AttachmentID] {
        guard
            let gone = try Row.fetchOne(db.cachedStatement(sql: "SELECT app, device FROM attachment_party_gone LIMIT 1"))
        else { return [] }
        let (app, device): (Int64, Int64) = (gone[0], gone[1])
        if device == 0 {
            let removed = try remove("SELECT serial FROM attachment WHERE app = ? LIMIT ?", [app, limit])
            if removed.count < limit { try forget(app, device) }
            return removed
        }
        let own = try remove("SELECT serial FROM attachment WHERE app = ? AND device = ? LIMIT ?", [app, device, limit])
        guard own.count < limit else { return own }
        let read = try Int64.fetchAll(
            db.cachedStatement(sql: "SELECT attachment FROM attachment_reader WHERE device = ? AND device > 0 LIMIT ?"),
            arguments: [device, limit - own.count])
        for serial in read {
            try db.run("DELETE FROM attachment_reader WHERE attachment = ? AND device = ?", [serial, device])
        }
        let unread = try read.flatMap(removeUnread)
        if own.count + read.count < limit { try forget(app, device) }
        return own + unread
    }

    /// Ends the rights of a device's former user: the device does not own the user's uploads any more, and is no reader of
    /// attachments for the user.
    func userLeaves(_ device: DeviceSerial, of app: AppSerial) throws {
        try db.run(
            """
            UPDATE attachment SET of_user = 2, idempotency = NULL, fingerprint = NULL
            WHERE app = ? AND device = ? AND of_user = 1
            """, [app.rawValue, device.rawValue])
        try db.run(
            "UPDATE attachment_reader SET of_user = 2 WHERE device = ? AND device > 0 AND of_user = 1", [device.rawValue])
    }

    static let isAnyOfFormerUsers = """
        EXISTS (SELECT 1 FROM attachment WHERE of_user = 2 AND NOT is_complete)
            OR EXISTS (SELECT 1 FROM attachment_reader WHERE of_user = 2)
        """

    /// Removes uploads of former users that are not complete, and attachments that only former users could read.
    func removeOfFormerUsers(limit: Int) throws -> [AttachmentID] {
        let unfinished = try remove("SELECT serial FROM attachment WHERE of_user = 2 AND NOT is_complete LIMIT ?", [limit])
        let read = try Int64.fetchAll(
            db.cachedStatement(
                sql: """
                    DELETE FROM attachment_reader WHERE (attachment, device) IN
                        (SELECT attachment, device FROM attachment_reader WHERE of_user = 2 LIMIT ?)
                    RETURNING attachment
                    """), arguments: [limit - unfinished.count])
        return try unfinished + Set(read).flatMap(removeUnread)
    }

    private func removeUnread(_ serial: Int64) throws -> [AttachmentID] {
        try remove(
            """
            SELECT serial FROM attachment WHERE serial = ?1
                AND NOT EXISTS (SELECT 1 FROM attachment_reader WHERE attachment = ?1)
            """, [serial])
    }

    private func forget(_ app: Int64, _ device: Int64) throws {
        try db.run("DELETE FROM attachment_party_gone WHERE app = ? AND device = ?", [app, device])
    }

    /// - Parameter serials: The serial numbers of the attachments, as SQL.
    private func remove(_ serials: String, _ arguments: StatementArguments) throws -> [AttachmentID] {
        let delete = try db.cachedStatement(
            sql: "DELETE FROM attachment WHERE serial IN (\(serials)) RETURNING id, app, allowance, charged")
        var totals = AttachmentTotals()
        let removed = try Row.fetchAll(delete, arguments: arguments).compactMap { (row: Row) -> AttachmentID? in
            totals.add(-(row[3] as Int64), to: row[2], of: AppSerial(row[1]))
            return row.bytes(at: 0).flatMap(AttachmentID.init)
        }
        try write(totals)
        return removed
    }
}
