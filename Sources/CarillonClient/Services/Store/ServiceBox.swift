import CarillonBasics
import CarillonWire
import Crypto
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What came about a request, and is not done.
struct StoredServiceEvent: Sendable {
    var number: Int64
    var event: ServiceEvent
    /// Where its files are, as ``StoragePaths`` keeps it.
    var directory: String?
    /// Its handler was called before.
    var isBegun: Bool
    /// Its consumer took it back before.
    var isUnwanted: Bool
    /// It came from an app of this machine.
    var isLocal: Bool
    /// What is posted, once it is decided.
    var reply: [UInt8]?
    /// The server's names for the files of this reply.
    var replyFiles: [String]
    /// When the request was read first, in milliseconds since 1970; nil of one that is no request, or was read too long ago.
    var arrivedAt: Int64?
    /// What the handler returned, while its files are on their way.
    var draft: ReplyDraft?
    /// The starts of its handler that ended with the process.
    var starts: Int

    /// Nil for what this version cannot read.
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

/// An own key that others seal with.
struct OwnKey: Sendable {
    var name: String
    var key: Curve25519.KeyAgreement.PrivateKey
    var validUntil: Int64
}

/// The own side of sealing: who this device is, and its present key.
struct OwnKeys: Sendable {
    var identity: Curve25519.Signing.PrivateKey
    var key: OwnKey

    var fingerprint: String { Fingerprint.text(of: Array(identity.publicKey.rawRepresentation)) }

    func bundle(of device: String) throws -> KeyBundle {
        try KeyBundle(key.key, named: key.name, until: key.validUntil, device: device, by: identity)
    }
}

/// The durable state of services: each method is one transaction.
struct ServiceBox: Sendable {
    let store: ClientStore

    static let keySeconds: Int64 = 7 * 86_400
    /// How long a key is kept when it is not sealed with any more: the longest deadline and a day.
    static let keptSeconds: Int64 = RequestHeader.longestDeadlineSeconds + 86_400
    /// The server is asked for a result no longer than this after its deadline.
    static let resultSeconds: Int64 = 8 * 86_400

    // MARK: Events

    /// Those behind a place, in order. A request that came before, and was sent again by somebody, is forgotten.
    func events(
        after number: Int64, at now: Int64, limit: Int
    ) async throws(PushError) -> (events: [StoredServiceEvent], repeated: Int, last: Int64?) {
        // What is lost with the power is looked at again, and handled once more.
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
                // What this version cannot read is nothing to it.
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

    /// How long after its deadline a request is known.
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

    /// Stores that the handler of a request is called. That it is called once must survive the loss of power.
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

    /// Stores what is posted, with the server's names for its files.
    func decided(
        _ number: Int64, reply: [UInt8], claiming uploads: [String], files: [String] = []
    ) async throws(PushError) {
        // After a loss of power it is decided once more, and the server has the first. What names files must not forget them.
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

    /// Who this device is, and the key that others seal with: made where there is none, and a new one where its time is over.
    func keys(at now: Int64) async throws(PushError) -> OwnKeys {
        try await store.write { db in
            let identity = try Self.identity(at: now, db)
            try db.run("DELETE FROM service_key WHERE kept_until < ?", [now])
            if let row = try Row.first(
                db, "SELECT * FROM service_key WHERE valid_until > ? ORDER BY valid_until DESC", [now])
            {
                return OwnKeys(identity: identity, key: try Self.key(row))
            }
            let key = OwnKey(
                name: Hexadecimal.encode(Array(ChunkSeal.makeKey().prefix(8))), key: .init(),
                validUntil: now + Self.keySeconds * 1000)
            try db.run(
                "INSERT INTO service_key VALUES (?, ?, ?, ?)",
                [key.name, key.key.rawRepresentation, key.validUntil, key.validUntil + Self.keptSeconds * 1000])
            try Self.noteUse(at: now, db)
            return OwnKeys(identity: identity, key: key)
        }
    }

    func key(named name: String) async throws(PushError) -> OwnKey? {
        try await store.write(reachingDisk: false) { db in
            try Row.first(db, "SELECT * FROM service_key WHERE name = ?", [name]).map(Self.key)
        }
    }

    private static func key(_ row: Row) throws -> OwnKey {
        OwnKey(
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

    /// The server has it. If that is forgotten, it is sent once more, and is the same.
    func sent(_ id: String) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("UPDATE service_call SET body = NULL WHERE id = ?", [id])
        }
    }

    /// Notes that the app hears that its provider has all of it, and forgets the event that said so.
    ///
    /// - Returns: Nil where it heard it before, or nothing is known of the call.
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

    /// Nil for a call that was taken back: nothing that comes of it is of interest.
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

    /// Nobody waits for a call any more. It stays until the server knows.
    func takeBack(_ id: String) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            guard var call = try Self.call(id, db) else { return }
            call.isUnwanted = true
            try db.run("UPDATE service_call SET call = ?, body = NULL WHERE id = ?", [Self.text(of: call), id])
        }
    }

    /// The calls that were taken back, and of which the server may not know.
    func takenBack() async throws(PushError) -> [StoredCall] {
        try await store.write(reachingDisk: false) { db in
            try Row.all(db, "SELECT call, local_until FROM service_call WHERE body IS NULL")
                .compactMap { row in Self.call(row) }.filter(\.isUnwanted)
        }
    }

    /// Those that the server may not have.
    func unsent(at now: Int64) async throws(PushError) -> [(id: String, body: [UInt8])] {
        try await store.write { db in
            try db.run("DELETE FROM service_call WHERE kept_until < ?", [now])
            return try Row.all(db, "SELECT id, body FROM service_call WHERE body IS NOT NULL").map {
                ($0["id"], Array($0["body"] as Data))
            }
        }
    }

    /// It has its result, which is given once; the event that brought it goes with it. Answers false when it had one before.
    func finish(_ id: String, event number: Int64? = nil) async throws(PushError) -> Bool {
        try await store.write(reachingDisk: false) { db in
            if let number { try db.run("DELETE FROM service_event WHERE number = ?", [number]) }
            try db.run("DELETE FROM service_call WHERE id = ?", [id])
            return db.changesCount == 1
        }
    }

    // MARK: This machine

    /// How many events may be undone while others of this machine add to them.
    private static let mostEvents = 1000
    private static let vouchedSeconds: Int64 = 86_400

    /// Takes what an app of this machine says: a request of a device that the server vouched for, or something of a request that is known.
    ///
    /// - Returns: False for anything else, and where there is enough to do.
    func addLocal(_ event: ServiceEvent, _ body: [UInt8], at now: Int64) async throws(PushError) -> Bool {
        try await store.write { db in
            let isExpected: Bool
            switch event {
            case .request(_, let from, _, _):
                let vouchedAt = try Int64.first(
                    db, "SELECT max(vouched_at) FROM service_peer WHERE device = ?", [from.device])
                isExpected = (vouchedAt ?? 0) > now - Self.vouchedSeconds * 1000
            case .reply(let id, let from, _): isExpected = try Self.call(id.description, db)?.peer == from
            case .received(let id): isExpected = try Self.call(id.description, db) != nil
            case .cancelled(let id):
                isExpected = try Int64.first(db, "SELECT 1 FROM service_seen WHERE id = ?", [id.description]) != nil
            // The server's word.
            case .failed: isExpected = false
            }
            guard isExpected, try Int64.first(db, "SELECT count(*) FROM service_event") ?? 0 < Self.mostEvents else {
                return false
            }
            try db.run("INSERT INTO service_event (body, is_local) VALUES (?, 1)", [Data(body)])
            return true
        }
    }

    /// The server says that a device may call this one, as it brought something of it or named it.
    func vouch(_ device: String, at now: Int64) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("UPDATE service_peer SET vouched_at = ? WHERE device = ?", [now, device])
        }
    }

    /// An app of this machine has it, and the server need not.
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

    /// Whether a reply to a request is stored that its provider sent.
    func hasReply(to id: String) async throws(PushError) -> Bool {
        try await store.write(reachingDisk: false) { db in
            guard let call = try Self.call(id, db) else { return false }
            // Few bodies have the id, so that few are parsed.
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

    /// Those that something stored names, and that may not be confirmed.
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
