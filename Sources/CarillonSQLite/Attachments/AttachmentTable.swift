import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads and changes the rows of attachments, inside a transaction.
struct AttachmentTable {
    let db: Database

    init(_ db: Database) { self.db = db }

    static let isGrowing = "NOT is_complete AND of_user < 2"

    private static let columns =
        "serial, id, app, device, length, synced, is_complete, digest, lifetime, expires_at, of_user FROM attachment"

    func attachment(_ id: AttachmentID) throws -> Attachment? {
        let select = try db.cachedStatement(sql: "SELECT \(Self.columns) WHERE id = ?")
        return try Row.first(select, [Data(id.bytes)], Attachment.init)
    }

    // MARK: Beginning

    func add(_ request: AttachmentRequest, at now: Timestamp) throws -> AttachmentAddition {
        let (app, owner) = (request.owner.app.rawValue, request.owner.principal.number)
        if let (key, fingerprint) = request.idempotency {
            let select = try db.cachedStatement(
                sql: "SELECT \(Self.columns) WHERE app = ? AND device = ? AND idempotency = ?")
            if let known = try Row.first(select, [app, owner, Data(key)], Attachment.init) {
                let earlier = try Data.fetchOne(
                    db, sql: "SELECT fingerprint FROM attachment WHERE serial = ?", arguments: [known.serial.rawValue])
                return earlier.map(Array.init) == fingerprint ? .repeated(known) : .reused
            }
        }
        guard let allowance = try allowance(of: request.owner) else { return .ownerGone }
        if let refusal = try refusal(of: request) { return refusal }
        let usage = try usage(of: request.owner.app.rawValue, allowance, isSender: request.owner.principal == .senders)
        let charge: Int64
        switch AttachmentRules.decide(length: request.length, received: 0, usage, request.limits) {
        case .counts(let bytes): charge = bytes
        case .overUser(let limit): return .overUser(limit: limit)
        case .overApp(let limit): return .overApp(limit: limit)
        case .overReserved(let limit): return .overReserved(limit: limit)
        }
        let expiresAt = now.adding(seconds: request.limits.unfinishedSeconds)
        let serial = try db.inserted(
            """
            INSERT INTO attachment
                (id, app, device, allowance, length, charged, digest, lifetime, expires_at, idempotency, fingerprint, of_user,
                 kept_served)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \(Self.hasUser("?3")), (SELECT seconds FROM served))
            RETURNING serial
            """,
            [
                Data(request.proposed.bytes), app, owner, allowance, request.length, charge, request.digest.map { Data($0) },
                request.lifetimeSeconds, expiresAt.milliseconds, request.idempotency.map { Data($0.key) },
                request.idempotency.map { Data($0.fingerprint) },
            ])
        try count(charge, of: allowance, request.owner.app)
        for reader in request.readers {
            try db.run(
                """
                INSERT INTO attachment_reader (attachment, device, of_user) VALUES (?1, ?2, \(Self.hasUser("?2")))
                ON CONFLICT DO NOTHING
                """, [serial, reader.number])
        }
        return .added(
            Attachment(
                serial: AttachmentSerial(serial), id: request.proposed, app: request.owner.app,
                owner: request.owner.principal,
                length: request.length, synced: 0, isComplete: false, digest: request.digest,
                lifetimeSeconds: request.lifetimeSeconds, expiresAt: expiresAt))
    }

    /// Returns SQL for the value of `of_user`: 1 if the device has a user.
    private static func hasUser(_ device: String) -> String {
        """
        CASE WHEN EXISTS (SELECT 1 FROM device_profile AS p WHERE p.device = \(device) AND p.user IS NOT NULL)
            THEN 1 ELSE 0 END
        """
    }

    /// Returns the used bytes of an app's quota, and of one quota in it.
    ///
    /// - Parameter except: An upload that is not counted.
    private func usage(
        of app: Int64, _ allowance: String, isSender: Bool, except: (serial: Int64, charge: Int64) = (0, 0)
    ) throws -> AttachmentRules.Usage {
        func used(_ allowance: String) throws -> Int64 {
            try CounterTable(db).attachmentBytes(of: allowance, in: AppSerial(app)) - except.charge
        }
        guard !isSender else { return AttachmentRules.Usage(user: nil, app: try used(""), reserved: 0) }
        let reserved = try Int64.first(
            db,
            """
            SELECT coalesce(sum(CASE WHEN charged > synced THEN charged - synced ELSE 0 END), 0) FROM attachment
            WHERE app = ? AND allowance = ? AND NOT is_complete AND serial <> ?
            """, [app, allowance, except.serial])
        return AttachmentRules.Usage(user: try used(allowance), app: try used(""), reserved: reserved ?? 0)
    }

    func reserve(
        _ serial: AttachmentSerial, received: Int64, _ limits: AttachmentLimits
    ) throws -> AttachmentReservation {
        guard let upload = try upload(serial, where: "NOT is_complete") else { return .gone }
        let usage = try usage(
            of: upload.app.rawValue, upload.allowance, isSender: upload.owner == .senders,
            except: (serial.rawValue, upload.charged))
        let decision = AttachmentRules.decide(length: upload.length, received: received, usage, limits)
        if case .counts(let bytes) = decision {
            try charge(bytes, upload)
            return .reserved
        }
        try charge(AttachmentRules.charge(received: received, limits), upload)
        switch decision {
        case .counts: return .reserved
        case .overUser(let limit): return .overUser(limit: limit)
        case .overApp(let limit): return .overApp(limit: limit)
        case .overReserved(let limit): return .overReserved(limit: limit)
        }
    }

    /// An upload that is not complete, and the bytes that it counts.
    private struct Upload {
        var serial: AttachmentSerial
        var app: AppSerial
        var owner: AttachmentPrincipal
        var allowance: String
        var length: Int64
        var charged: Int64
    }

    private func upload(_ serial: AttachmentSerial, where condition: String) throws -> Upload? {
        let select = try db.cachedStatement(
            sql: "SELECT app, device, allowance, length, charged FROM attachment WHERE serial = ? AND \(condition)")
        return try Row.first(select, [serial.rawValue]) { row in
            Upload(
                serial: serial, app: AppSerial(row[0]), owner: AttachmentPrincipal(number: row[1]), allowance: row[2],
                length: row[3],
                charged: row[4])
        }
    }

    private func charge(_ bytes: Int64, _ upload: Upload) throws {
        guard bytes != upload.charged else { return }
        try db.run("UPDATE attachment SET charged = ? WHERE serial = ?", [bytes, upload.serial.rawValue])
        try count(bytes - upload.charged, of: upload.allowance, upload.app)
    }

    /// Marks an upload as complete. Returns false if it cannot grow any more.
    func complete(_ serial: AttachmentSerial, expiresAt: Timestamp) throws -> Bool {
        guard let upload = try upload(serial, where: Self.isGrowing) else { return false }
        try charge(AttachmentRules.charge(ofWhole: upload.length, charged: upload.charged), upload)
        try db.run(
            """
            UPDATE attachment SET is_complete = TRUE, synced = length, expires_at = ?, kept_served = (SELECT seconds FROM served)
            WHERE serial = ?
            """,
            [expiresAt.milliseconds, serial.rawValue])
        return true
    }

    // MARK: Totals

    private func count(_ bytes: Int64, of allowance: String, _ app: AppSerial) throws {
        var totals = AttachmentTotals()
        totals.add(bytes, to: allowance, of: app)
        try write(totals)
    }

    /// Writes the totals in the order of the keys, so that transactions of several writers do not deadlock.
    func write(_ totals: AttachmentTotals) throws {
        let changes = totals.changes.sorted { one, other in
            (one.key.app.rawValue, one.key.allowance) < (other.key.app.rawValue, other.key.allowance)
        }
        // A quota without used bytes has no row.
        let counters = CounterTable(db)
        for (key, bytes) in changes {
            try counters.add(attachmentBytes: bytes, of: key.allowance, in: key.app)
        }
    }

    // MARK: Owners

    /// Returns the name of the owner's quota: the quota of the device's user, or of a device without a user. Nil if the owner was
    /// deleted.
    func allowance(of owner: AttachmentUser) throws -> String? {
        guard case .device(let device) = owner.principal else {
            let app = "SELECT 's' FROM app WHERE serial = ? AND ended_at IS NULL"
            return try String.fetchOne(db, sql: app, arguments: [owner.app.rawValue])
        }
        return try String.fetchOne(
            db,
            sql: """
                SELECT coalesce('u' || device_profile.user, 'd' || device.serial) FROM device
                JOIN app ON app.serial = device.app AND app.ended_at IS NULL
                LEFT JOIN device_profile ON device_profile.device = device.serial WHERE device.serial = ?
                """, arguments: [device.rawValue])
    }

    private func refusal(of request: AttachmentRequest) throws -> AttachmentAddition? {
        let (app, limits) = (request.owner.app.rawValue, request.limits)
        let most = request.owner.principal == .senders ? limits.uploadsOfSenders : limits.uploadsOfDevice
        let begun = try Int.first(
            db, "SELECT count(*) FROM attachment WHERE app = ? AND device = ? AND NOT is_complete AND of_user < 2",
            [app, request.owner.principal.number])
        return begun ?? 0 < most ? nil : .tooManyUploads(limit: most)
    }
}

extension Attachment {
    /// - Parameter row: A row with the table's columns.
    fileprivate init(row: Row) throws {
        guard let id = row.bytes(at: 1).flatMap(AttachmentID.init) else {
            throw StoreFault(.unavailable, "an attachment's row cannot be read")
        }
        self.init(
            serial: AttachmentSerial(row[0]), id: id, app: AppSerial(row[2]),
            owner: row[10] == 2 ? nil : AttachmentPrincipal(number: row[3]),
            length: row[4],
            synced: row[5], isComplete: row[6], digest: row.bytes(at: 7), lifetimeSeconds: row[8],
            expiresAt: row.timestamp(at: 9))
    }
}
