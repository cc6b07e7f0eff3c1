import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The rows of attachments, inside of a transaction.
struct AttachmentTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    private static let columns =
        "serial, id, app, device, length, synced, is_complete, digest, lifetime, expires_at, of_user FROM attachment"

    func attachment(_ id: AttachmentID) throws -> Attachment? {
        let select = try db.cachedStatement(sql: "SELECT \(Self.columns) WHERE id = ?")
        return try Row.first(select, [Data(id.bytes)], Attachment.init)
    }

    // MARK: Beginning

    func add(_ wish: AttachmentWish, at now: Timestamp) throws -> AttachmentAddition {
        let (app, owner) = (wish.owner.app.rawValue, wish.owner.party.number)
        if let (key, fingerprint) = wish.idempotency {
            let select = try db.cachedStatement(
                sql: "SELECT \(Self.columns) WHERE app = ? AND device = ? AND idempotency = ?")
            if let known = try Row.first(select, [app, owner, Data(key)], Attachment.init) {
                let earlier = try Data.fetchOne(
                    db, sql: "SELECT fingerprint FROM attachment WHERE serial = ?", arguments: [known.serial.rawValue])
                return earlier.map(Array.init) == fingerprint ? .repeated(known) : .reused
            }
        }
        guard let allowance = try allowance(of: wish.owner) else { return .ownerGone }
        if let refusal = try refusal(of: wish) { return refusal }
        let usage = try usage(of: wish.owner.app.rawValue, allowance, isSender: wish.owner.party == .senders)
        let charge: Int64
        switch AttachmentRules.decide(length: wish.length, received: 0, usage, wish.limits) {
        case .counts(let bytes): charge = bytes
        case .overUser(let limit): return .overUser(limit: limit)
        case .overApp(let limit): return .overApp(limit: limit)
        case .overReserved(let limit): return .overReserved(limit: limit)
        }
        let expiresAt = now.adding(seconds: wish.limits.unfinishedSeconds)
        try db.run(
            """
            INSERT INTO attachment
                (id, app, device, allowance, length, charged, digest, lifetime, expires_at, idempotency, fingerprint, of_user,
                 kept_served)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \(Self.hasUser("?3")), (SELECT seconds FROM served))
            """,
            [
                Data(wish.proposed.bytes), app, owner, allowance, wish.length, charge, wish.digest.map { Data($0) },
                wish.lifetimeSeconds, expiresAt.milliseconds, wish.idempotency.map { Data($0.key) },
                wish.idempotency.map { Data($0.fingerprint) },
            ])
        let serial = db.lastInsertedRowID
        for reader in wish.readers {
            try db.run(
                """
                INSERT OR IGNORE INTO attachment_reader (attachment, device, of_user)
                VALUES (?1, ?2, \(Self.hasUser("?2")))
                """, [serial, reader.number])
        }
        return .added(
            Attachment(
                serial: AttachmentSerial(serial), id: wish.proposed, app: wish.owner.app, owner: wish.owner.party,
                length: wish.length, synced: 0, isComplete: false, digest: wish.digest,
                lifetimeSeconds: wish.lifetimeSeconds, expiresAt: expiresAt))
    }

    private static func hasUser(_ device: String) -> String {
        "EXISTS (SELECT 1 FROM device_profile AS p WHERE p.device = \(device) AND p.user NOT NULL)"
    }

    /// What is used of an app's allowance, and of an allowance in it.
    ///
    /// - Parameter except: An upload that is not counted.
    private func usage(
        of app: Int64, _ allowance: String, isSender: Bool, except: (serial: Int64, charge: Int64) = (0, 0)
    ) throws -> AttachmentRules.Usage {
        func used(_ allowance: String) throws -> Int64 {
            let bytes = try Int64.first(
                db, "SELECT bytes FROM attachment_total WHERE app = ? AND allowance = ?", [app, allowance])
            return (bytes ?? 0) - except.charge
        }
        guard !isSender else { return AttachmentRules.Usage(user: nil, app: try used(""), reserved: 0) }
        let reserved = try Int64.first(
            db,
            """
            SELECT coalesce(sum(max(0, charged - synced)), 0) FROM attachment
            WHERE app = ? AND allowance = ? AND NOT is_complete AND serial <> ?
            """, [app, allowance, except.serial])
        return AttachmentRules.Usage(user: try used(allowance), app: try used(""), reserved: reserved ?? 0)
    }

    func reserve(
        _ serial: AttachmentSerial, received: Int64, _ limits: AttachmentLimits
    ) throws -> AttachmentReservation {
        let select = try db.cachedStatement(
            sql: "SELECT app, device, allowance, length, charged FROM attachment WHERE serial = ? AND NOT is_complete")
        let read = { (row: Row) in
            (
                app: row[0] as Int64, device: row[1] as Int64, allowance: row[2] as String, length: row[3] as Int64,
                charged: row[4] as Int64
            )
        }
        guard let upload = try Row.first(select, [serial.rawValue], read) else { return .gone }
        let usage = try usage(
            of: upload.app, upload.allowance, isSender: Party(number: upload.device) == .senders,
            except: (serial.rawValue, upload.charged))
        func count(_ bytes: Int64) throws {
            try db.run("UPDATE attachment SET charged = ? WHERE serial = ?", [bytes, serial.rawValue])
        }
        let decision = AttachmentRules.decide(length: upload.length, received: received, usage, limits)
        if case .counts(let bytes) = decision {
            try count(bytes)
            return .reserved
        }
        try count(AttachmentRules.charge(received: received, limits))
        switch decision {
        case .counts: return .reserved
        case .overUser(let limit): return .overUser(limit: limit)
        case .overApp(let limit): return .overApp(limit: limit)
        case .overReserved(let limit): return .overReserved(limit: limit)
        }
    }

    /// Whose bytes they are: the device's user's, where it has one. Nil when the owner is gone.
    func allowance(of owner: AttachmentUser) throws -> String? {
        guard case .device(let device) = owner.party else {
            let app = "SELECT 's' FROM app WHERE serial = ? AND ended_at IS NULL"
            return try String.fetchOne(db, sql: app, arguments: [owner.app.rawValue])
        }
        return try String.fetchOne(
            db,
            sql: """
                SELECT coalesce('u' || user, 'd' || device.serial) FROM device
                JOIN app ON app.serial = device.app AND app.ended_at IS NULL
                LEFT JOIN device_profile ON device_profile.device = device.serial WHERE device.serial = ?
                """, arguments: [device.rawValue])
    }

    private func refusal(of wish: AttachmentWish) throws -> AttachmentAddition? {
        let (app, limits) = (wish.owner.app.rawValue, wish.limits)
        let most = wish.owner.party == .senders ? limits.uploadsOfSenders : limits.uploadsOfDevice
        let begun = try Int.first(
            db, "SELECT count(*) FROM attachment WHERE app = ? AND device = ? AND NOT is_complete AND of_user < 2",
            [app, wish.owner.party.number])
        return begun ?? 0 < most ? nil : .tooManyUploads(limit: most)
    }

    // MARK: Ending

    /// Answers whether it was: nobody is left who may fetch it.
    func removeIfUnread(_ serial: Int64) throws -> Bool {
        try db.run(
            """
            DELETE FROM attachment WHERE serial = ?1
                AND NOT EXISTS (SELECT 1 FROM attachment_reader WHERE attachment = ?1)
            """, [serial])
        return db.changesCount == 1
    }

    func removeExpired(by retention: RetentionTime, unfinishedSeconds: Int64, limit: Int) throws -> [AttachmentID] {
        try remove(
            "SELECT serial FROM attachment WHERE \(Self.isExpired) ORDER BY expires_at LIMIT ?",
            Self.expiry(retention, unfinishedSeconds) + [limit])
    }

    static func isAnyExpired(_ db: Database, by retention: RetentionTime, unfinishedSeconds: Int64) throws -> Bool {
        try Int64.first(
            db, "SELECT 1 FROM attachment WHERE \(isExpired) LIMIT 1", expiry(retention, unfinishedSeconds)) != nil
    }

    private static let isExpired = "expires_at <= ? AND kept_served + iif(is_complete, lifetime, ?) <= ?"

    private static func expiry(_ retention: RetentionTime, _ unfinishedSeconds: Int64) -> StatementArguments {
        [retention.now.milliseconds, unfinishedSeconds, retention.cutoff(afterSeconds: 0).served]
    }

    /// Leaves a row for the sweeper if a removed device has attachments, or may fetch some.
    func deviceGone(_ device: DeviceSerial, of app: AppSerial) throws {
        try db.run(
            """
            INSERT INTO attachment_party_gone (app, device)
            SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM attachment WHERE app = ?1 AND device = ?2)
                OR EXISTS (SELECT 1 FROM attachment_reader WHERE device = ?2 AND device > 0)
            ON CONFLICT DO NOTHING
            """, [app.rawValue, device.rawValue])
    }

    /// Leaves a row for the sweeper if a deleted app has attachments.
    func appGone(_ app: AppSerial) throws {
        try db.run(
            """
            INSERT INTO attachment_party_gone (app, device)
            SELECT ?1, 0 WHERE EXISTS (SELECT 1 FROM attachment WHERE app = ?1) ON CONFLICT DO NOTHING
            """, [app.rawValue])
    }

    /// What belonged to somebody who is gone, or was for nobody else.
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

    /// The device's user leaves: the device does not own what the user uploaded, and is no reader of what was for the user.
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

    /// What nobody can finish or read since the user of a device left.
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

    private func remove(_ serials: String, _ arguments: StatementArguments) throws -> [AttachmentID] {
        let delete = try db.cachedStatement(sql: "DELETE FROM attachment WHERE serial IN (\(serials)) RETURNING id")
        return try Data.fetchAll(delete, arguments: arguments).compactMap { AttachmentID(Array($0)) }
    }
}

extension Attachment {
    /// - Parameter row: As the table's columns give it.
    fileprivate init(row: Row) throws {
        guard let id = row.bytes(at: 1).flatMap(AttachmentID.init) else {
            throw StoreFault(.unavailable, "an attachment's row cannot be read")
        }
        self.init(
            serial: AttachmentSerial(row[0]), id: id, app: AppSerial(row[2]),
            owner: row[10] == 2 ? nil : Party(number: row[3]),
            length: row[4],
            synced: row[5], isComplete: row[6], digest: row.bytes(at: 7), lifetimeSeconds: row[8],
            expiresAt: row.timestamp(at: 9))
    }
}
