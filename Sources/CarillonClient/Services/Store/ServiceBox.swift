import CarillonBasics
import CarillonWire
import Crypto
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An unfinished event of a request.
struct StoredServiceEvent: Sendable {
    var number: Int64
    var event: ServiceEvent
    /// The directory of the event's files, in the form of ``StoragePaths``; nil before the files are received.
    var directory: String?
    /// Whether the handler was called before, and must be called only once.
    var isBegun: Bool
    /// Whether the consumer cancelled the request.
    var isUnwanted: Bool
    /// Whether the event arrived from an app on this machine.
    var isLocal: Bool
    /// The reply to be posted; nil until it is ready.
    var reply: [UInt8]?
    /// The ids of the files of this reply on the server.
    var replyFiles: [String]
    /// When the request was first read, in milliseconds since 1970; nil if the event is not a request, or was read too long ago.
    var arrivedAt: Int64?
    /// The reply of the handler while its files are being uploaded.
    var draft: ReplyDraft?
    /// The starts of the handler that ended with the process.
    var starts: Int

    /// Returns nil if this version cannot read the event.
    init?(_ row: Row) {
        guard let event = ServiceEvent(Array(row["body"] as Data)) else { return nil }
        number = row["number"]
        self.event = event
        directory = row["directory"]
        isBegun = row["is_begun"]
        isUnwanted = row["is_unwanted"]
        isLocal = row["is_local"]
        reply = (row["reply"] as Data?).map(Array.init)
        replyFiles = reply == nil ? [] : ReplyDraft.postedFiles(row["draft_files"])
        draft = ReplyDraft(stored: row["draft_payload"], files: row["draft_files"])
        starts = row["starts"]
    }
}

/// A key of this device with which others seal.
struct AgreementKey: Sendable {
    var name: String
    var key: Curve25519.KeyAgreement.PrivateKey
    var validUntil: Int64
}

/// The identity of this device, and its present key.
struct DeviceKeys: Sendable {
    var identity: Curve25519.Signing.PrivateKey
    var key: AgreementKey

    var fingerprint: String { Fingerprint.text(of: Array(identity.publicKey.rawRepresentation)) }

    func bundle(of device: String) throws -> KeyBundle {
        try KeyBundle(key.key, named: key.name, until: key.validUntil, device: device, by: identity)
    }
}

/// The durable state of services. Each method is one transaction.
struct ServiceBox: Sendable {
    let store: ClientStore

    static let keySeconds: Int64 = 7 * 86_400
    /// How long a former key is stored: the longest deadline and a day.
    static let keptSeconds: Int64 = RequestHeader.longestDeadlineSeconds + 86_400
    /// How long after the deadline of a request its result can be requested from the server.
    static let resultSeconds: Int64 = 8 * 86_400

    // MARK: Events

    /// Returns the events behind a position, in order. Requests that arrived before, and were sent again, are deleted and
    /// counted.
    func events(
        after number: Int64, at now: Int64, limit: Int
    ) async throws(PushError) -> (events: [StoredServiceEvent], repeated: Int, last: Int64?) {
        // After a power failure the events are read and handled again.
        try await store.write(reachingDisk: false) { db in
            let rows = try Row.all(
                db,
                """
                SELECT service_event.*, service_draft.payload AS draft_payload, service_draft.files AS draft_files
                FROM service_event LEFT JOIN service_draft ON service_draft.number = service_event.number
                WHERE service_event.number > ? ORDER BY service_event.number LIMIT ?
                """, [number, limit])
            var events: [StoredServiceEvent] = []
            var repeated = 0
            for row in rows {
                // Events that this version cannot read are deleted.
                var event = StoredServiceEvent(row)
                if let known = event, try Self.isFirst(known, row["is_known"], at: now, db) {
                    event?.arrivedAt = try Self.arrival(of: known, db)
                    if let event { events.append(event) }
                    continue
                }
                if event != nil { repeated += 1 }
                try db.run("DELETE FROM service_event WHERE number = ?", [row["number"] as Int64])
            }
            return (events, repeated, rows.last.map { $0["number"] })
        }
    }

    private static func isFirst(
        _ event: StoredServiceEvent, _ isKnown: Bool, at now: Int64, _ db: Database
    ) throws -> Bool {
        guard case .request(let header, _, _, _) = event.event, !isKnown else { return true }
        try db.run("DELETE FROM service_seen WHERE until < ?", [now])
        let until = now + (header.deadlineSeconds + seenSeconds) * 1000
        try db.run("INSERT OR IGNORE INTO service_seen VALUES (?, ?)", [header.id.description, until])
        guard db.changesCount == 1 else { return false }
        try db.run("UPDATE service_event SET is_known = 1 WHERE number = ?", [event.number])
        return true
    }

    /// How long after its deadline a request is remembered.
    private static let seenSeconds: Int64 = 86_400

    private static func arrival(of event: StoredServiceEvent, _ db: Database) throws -> Int64? {
        guard case .request(let header, _, _, _) = event.event else { return nil }
        let until = try Int64.first(db, "SELECT until FROM service_seen WHERE id = ?", [header.id.description])
        return until.map { $0 - (header.deadlineSeconds + seenSeconds) * 1000 }
    }

    func setDirectory(_ directory: String, of number: Int64) async throws(PushError) {
        try await store.write { db in
            try db.run("UPDATE service_event SET directory = ? WHERE number = ?", [directory, number])
        }
    }

    /// Stores that the handler of a request is called. With `atMostOnce` the record must survive a power failure.
    func begun(_ event: StoredServiceEvent, atMostOnce: Bool) async throws(PushError) {
        try await store.write(reachingDisk: atMostOnce) { db in
            try db.run(
                "UPDATE service_event SET is_begun = is_begun OR ?, starts = ? WHERE number = ?",
                [atMostOnce, event.starts + 1, event.number])
        }
    }

    func unwanted(_ number: Int64) async throws(PushError) {
        try await store.write { db in
            try db.run("UPDATE service_event SET is_unwanted = 1 WHERE number = ?", [number])
        }
    }

    /// Stores the reply to be posted, with the ids of its files on the server.
    func decided(
        _ number: Int64, reply: [UInt8], claiming uploads: [String], files: [String] = []
    ) async throws(PushError) {
        // After a power failure the reply is made again, and the server has the first one. A reply with files must be stored
        // durably.
        try await store.write(reachingDisk: !uploads.isEmpty) { db in
            try Self.claim(uploads, db)
            try db.run("UPDATE service_event SET reply = ? WHERE number = ?", [Data(reply), number])
            try db.run("DELETE FROM service_draft WHERE number = ?", [number])
            if !files.isEmpty { try ReplyDraft.post(files, of: number, db) }
        }
    }

    func done(_ number: Int64) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("DELETE FROM service_draft WHERE number = ?", [number])
            try db.run("DELETE FROM service_event WHERE number = ?", [number])
        }
    }

    // MARK: Keys

    /// Returns the identity of this device, and the key with which others seal. Makes them if they do not exist, and makes a new
    /// key after the former one has expired.
    func keys(at now: Int64) async throws(PushError) -> DeviceKeys {
        try await store.write { db in
            let identity = try Self.identity(at: now, db)
            try db.run("DELETE FROM service_key WHERE kept_until < ?", [now])
            if let row = try Row.first(
                db, "SELECT * FROM service_key WHERE valid_until > ? ORDER BY valid_until DESC", [now])
            {
                return DeviceKeys(identity: identity, key: try Self.key(row))
            }
            let key = AgreementKey(
                name: Hexadecimal.encode(Array(ChunkSeal.makeKey().prefix(8))), key: .init(),
                validUntil: now + Self.keySeconds * 1000)
            try db.run(
                "INSERT INTO service_key VALUES (?, ?, ?, ?)",
                [key.name, key.key.rawRepresentation, key.validUntil, key.validUntil + Self.keptSeconds * 1000])
            try Self.noteUse(at: now, db)
            return DeviceKeys(identity: identity, key: key)
        }
    }

    func key(named name: String) async throws(PushError) -> AgreementKey? {
        try await store.write(reachingDisk: false) { db in
            try Row.first(db, "SELECT * FROM service_key WHERE name = ?", [name]).map(Self.key)
        }
    }

    private static func key(_ row: Row) throws -> AgreementKey {
        AgreementKey(
            name: row["name"], key: try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: row["key"] as Data),
            validUntil: row["valid_until"])
    }

    // MARK: Calls

    func save(
        _ call: StoredCall, body: [UInt8], claiming uploads: [String], keptUntil: Int64
    ) async throws(PushError) {
        try await store.write { db in
            try Self.claim(uploads, db)
            try db.run(
                "INSERT OR REPLACE INTO service_call (id, call, body, kept_until) VALUES (?, ?, ?, ?)",
                [call.id, Self.text(of: call), Data(body), keptUntil])
        }
    }

    /// Records that the server has the request. If the record is lost, the same request is sent again.
    func sent(_ id: String) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("UPDATE service_call SET body = NULL WHERE id = ?", [id])
        }
    }

    /// Records that the app was notified that the provider received the whole request, and deletes the event that reported it.
    ///
    /// - Returns: Nil if the app was notified before, or the call is not known.
    func received(_ id: String, event number: Int64? = nil) async throws(PushError) -> StoredCall? {
        try await store.write(reachingDisk: false) { db in
            if let number { try db.run("DELETE FROM service_event WHERE number = ?", [number]) }
            guard var call = try Self.call(id, db), !call.isReceived else { return StoredCall?.none }
            call.isReceived = true
            try db.run(
                "UPDATE service_call SET call = ? WHERE id = ?", [Self.text(of: call), id])
            return call
        }
    }

    private static func text(of call: StoredCall) -> String { String(decoding: call.json.bytes, as: UTF8.self) }

    /// Returns nil for a call that was cancelled: its events are ignored.
    private static func call(_ id: String, _ db: Database) throws -> StoredCall? {
        let row = try Row.first(db, "SELECT call, local_until FROM service_call WHERE id = ?", [id])
        return row.flatMap { Self.call($0) }.flatMap { $0.isUnwanted ? nil : $0 }
    }

    private static func call(_ row: Row) -> StoredCall? {
        var call = JSONValue(parsing: Array((row[0] as String).utf8)).flatMap(StoredCall.init)
        call?.localUntil = row[1]
        return call
    }

    func call(_ id: String) async throws(PushError) -> StoredCall? {
        try await store.write(reachingDisk: false) { db in try Self.call(id, db) }
    }

    /// Marks a call as cancelled. It stays until the server is notified.
    func markWithdrawn(_ id: String) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            guard var call = try Self.call(id, db) else { return }
            call.isUnwanted = true
            try db.run("UPDATE service_call SET call = ?, body = NULL WHERE id = ?", [Self.text(of: call), id])
        }
    }

    /// Returns the cancelled calls of which the server may not have been notified.
    func withdrawnCalls() async throws(PushError) -> [StoredCall] {
        try await store.write(reachingDisk: false) { db in
            try Row.all(db, "SELECT call, local_until FROM service_call WHERE body IS NULL")
                .compactMap { row in Self.call(row) }.filter(\.isUnwanted)
        }
    }

    /// Returns the calls that the server may not have received.
    func unsent(at now: Int64) async throws(PushError) -> [(id: String, body: [UInt8])] {
        try await store.write { db in
            try db.run("DELETE FROM service_call WHERE kept_until < ?", [now])
            return try Row.all(db, "SELECT id, body FROM service_call WHERE body IS NOT NULL").map {
                ($0["id"], Array($0["body"] as Data))
            }
        }
    }

    /// Ends a call, which gets only one result, and deletes the event with the result. Returns false if the call had a result
    /// before.
    func finish(_ id: String, event number: Int64? = nil) async throws(PushError) -> Bool {
        try await store.write(reachingDisk: false) { db in
            if let number { try db.run("DELETE FROM service_event WHERE number = ?", [number]) }
            try db.run("DELETE FROM service_call WHERE id = ?", [id])
            return db.changesCount == 1
        }
    }

    // MARK: Apps on this machine

    /// The most unfinished events to which apps on this machine can add.
    private static let mostEvents = 1000
    private static let authorizedSeconds: Int64 = 86_400

    /// Adds an event from an app on this machine: a request of a device that the server reported within a day, or an event of a
    /// known request.
    ///
    /// - Returns: False for any other event, and if too many events are unfinished.
    func addLocal(_ event: ServiceEvent, _ body: [UInt8], at now: Int64) async throws(PushError) -> Bool {
        try await store.write { db in
            let isExpected: Bool
            switch event {
            case .request(_, let from, _, _):
                let authorizedAt = try Int64.first(
                    db, "SELECT max(vouched_at) FROM service_peer WHERE device = ?", [from.device])
                isExpected = (authorizedAt ?? 0) > now - Self.authorizedSeconds * 1000
            case .reply(let id, let from, _): isExpected = try Self.call(id.description, db)?.peer == from
            case .received(let id): isExpected = try Self.call(id.description, db) != nil
            case .cancelled(let id):
                isExpected = try Int64.first(db, "SELECT 1 FROM service_seen WHERE id = ?", [id.description]) != nil
            // Only the server sends this event.
            case .failed: isExpected = false
            }
            guard isExpected, try Int64.first(db, "SELECT count(*) FROM service_event") ?? 0 < Self.mostEvents else {
                return false
            }
            try db.run("INSERT INTO service_event (body, is_local) VALUES (?, 1)", [Data(body)])
            return true
        }
    }

    /// Records that the server permits a device to call this one, because it delivered a message of the device or listed it.
    func authorizeLocalRequests(of device: String, at now: Int64) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("UPDATE service_peer SET vouched_at = ? WHERE device = ?", [now, device])
        }
    }

    /// Records that an app on this machine received the call, so that it need not be sent to the server.
    func sentLocally(_ id: String, until: Int64) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("UPDATE service_call SET body = NULL, local_until = ? WHERE id = ?", [until, id])
        }
    }

    func localCalls() async throws(PushError) -> [(id: String, until: Int64)] {
        try await store.write(reachingDisk: false) { db in
            try Row.all(db, "SELECT call, local_until FROM service_call WHERE local_until IS NOT NULL")
                .compactMap { row in Self.call(row) }.filter { !$0.isUnwanted }
                .compactMap { call in call.localUntil.map { (id: call.id, until: $0) } }
        }
    }

    /// Whether a reply from the provider of a request is stored.
    func hasReply(to id: String) async throws(PushError) -> Bool {
        try await store.write(reachingDisk: false) { db in
            guard let call = try Self.call(id, db) else { return false }
            // Only a few bodies contain the id, so that few are parsed.
            let rows = try Row.all(db, "SELECT body FROM service_event WHERE instr(body, ?) > 0", [Data(id.utf8)])
            return rows.contains { row in
                guard case .reply(let request, let from, _)? = ServiceEvent(Array(row["body"] as Data)) else { return false }
                return request.description == id && from == call.peer
            }
        }
    }

    // MARK: Uploads

    private static func claim(_ uploads: [String], _ db: Database) throws {
        for upload in uploads {
            try db.run("INSERT OR IGNORE INTO service_upload VALUES (?)", [upload])
        }
    }

    /// Returns the uploads that a stored request or reply names, and that may not be confirmed.
    func claims() async throws(PushError) -> Set<String> {
        try await store.write(reachingDisk: false) { db in try String.fetchSet(db, sql: "SELECT id FROM service_upload") }
    }

    func unclaim(_ uploads: [String]) async throws(PushError) {
        guard !uploads.isEmpty else { return }
        try await store.write(reachingDisk: false) { db in
            for upload in uploads {
                try db.run("DELETE FROM service_upload WHERE id = ?", [upload])
            }
        }
    }

    func eventNumbers() async throws(PushError) -> Set<Int64> {
        try await store.write(reachingDisk: false) { db in try Int64.fetchSet(db, sql: "SELECT number FROM service_event") }
    }
}
