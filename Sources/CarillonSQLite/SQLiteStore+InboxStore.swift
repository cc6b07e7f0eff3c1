package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: InboxStore {
    package func lastPosition() async throws -> Int64 {
        try await read { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(coalesce((SELECT max(position) FROM envelope), 0),
                        coalesce((SELECT max(position) FROM idempotency), 0))
                    """) ?? 0
        }
    }

    package func commit(_ operations: [InboxOperation]) async throws -> [InboxResult] {
        do {
            return try await group.run { [usage, settings] db in
                let transaction = InboxTransaction(db, usage: usage, settings: settings)
                return try operations.map(transaction.perform)
            }
        } catch {
            guard operations.count > 1 else { throw error }
            return try await commitEach(operations)
        }
    }

    /// One of the changes cannot be stored: each is made for itself, in one transaction if the fault leaves it alive.
    private func commitEach(_ operations: [InboxOperation]) async throws -> [InboxResult] {
        do {
            return try await group.run { [usage, settings] db in
                let transaction = InboxTransaction(db, usage: usage, settings: settings)
                return try operations.map { operation in
                    var result = InboxResult.notWaiting
                    do {
                        try db.inSavepoint {
                            result = try transaction.perform(operation)
                            return .commit
                        }
                    } catch {
                        guard db.isInsideTransaction else { throw error }
                        usage.forgetAll()
                        result = .failed(StoreFault(error))
                    }
                    return result
                }
            }
        } catch {
            return try await commitAlone(operations, after: error)
        }
    }

    /// The fault ends whole transactions, as a disk does that is nearly full: what is small may still fit.
    private func commitAlone(_ operations: [InboxOperation], after fault: any Error) async throws -> [InboxResult] {
        var results: [InboxResult] = []
        var failures = 0
        for operation in operations {
            do {
                guard failures < Self.failuresInARow else { throw fault }
                results += try await group.run { [usage, settings] db in
                    [try InboxTransaction(db, usage: usage, settings: settings).perform(operation)]
                }
                failures = 0
            } catch {
                failures += 1
                results.append(.failed(StoreFault(error)))
            }
        }
        guard results.contains(where: { if case .failed = $0 { false } else { true } }) else { throw fault }
        return results
    }

    /// After so many changes that failed one after the other, the store is at fault, and the rest are not tried.
    private static let failuresInARow = 8

    package func waiting(
        device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp
    ) async throws -> [Envelope]? {
        try await readPage(of: bytes) { db in
            let select = try db.cachedStatement(
                sql: """
                    SELECT * FROM envelope
                    WHERE device = ? AND position > ? AND outcome IS NULL AND expires_at > ? ORDER BY position LIMIT ?
                    """)
            let rows = try Row.fetchCursor(
                select, arguments: [device.rawValue, position, now.milliseconds, limit])
            var envelopes: [Envelope] = []
            var size = 0
            while size < bytes, let row = try rows.next() {
                let envelope = try Envelope(row: row)
                size += envelope.byteCount
                envelopes.append(envelope)
            }
            return try envelopes.isEmpty && !Self.exists(device, in: db) ? nil : envelopes
        }
    }

    private static func exists(_ device: DeviceSerial, in db: Database) throws -> Bool {
        let select = try db.cachedStatement(sql: "SELECT 1 FROM device WHERE serial = ?")
        return try Int.fetchOne(select, arguments: [device.rawValue]) != nil
    }

    package func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int {
        try await read { db in
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM envelope WHERE device = ? AND outcome IS NULL AND expires_at > ?",
                arguments: [device.rawValue, now.milliseconds]) ?? 0
        }
    }

    package func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord? {
        try await read { db in
            let select = try db.cachedStatement(sql: "SELECT * FROM envelope WHERE position = ? AND kind = 0")
            guard let row = try Row.fetchOne(select, arguments: [id.position]), try row.bytes16("secret") == id.secret
            else { return nil }
            return MessageRecord(row: row, at: now)
        }
    }

    package func sweep(at now: Timestamp, limit: Int) async throws -> Swept {
        try await group.run { [usage, settings] db in
            try InboxTransaction(db, usage: usage, settings: settings).sweep(at: now, limit: limit)
        }
    }
}

extension Envelope {
    init(row: Row) throws {
        let kind: Kind
        switch row["kind"] as Int {
        case 0:
            let name = (row["coding"] as String?).flatMap(ContentCoding.Name.init(rawValue:))
            let coding = name.map { ContentCoding($0, encryption: row["encryption"], cryptoKey: row["crypto_key"]) }
            kind = .message(Content(body: row.bytes("body") ?? [], coding: coding))
        case 1: kind = .channelClosed
        case 2: kind = .channelError(code: row["event_code"] ?? ChannelErrorCode.server.lowerBound)
        case 3: kind = .pingFailed((row["event_code"] as Int?).flatMap(PingFailure.init) ?? .invalidAnswer)
        case 4: kind = .recovered
        default: throw StoreFault(.unavailable, "an envelope's kind is unknown")
        }
        self.init(
            id: MessageID(position: row["position"], secret: try row.bytes16("secret")),
            device: DeviceSerial(row["device"]), app: AppSerial(row["app"]), channel: ChannelSerial(row["channel"]),
            channelID: ChannelID(try row.bytes16("channel_id")), kind: kind,
            acceptedAt: row.timestamp("accepted_at"), expiresAt: row.timestamp("expires_at"))
    }
}

extension MessageRecord {
    /// A message that waits beyond its time has expired, whether it was swept yet or not.
    init(row: Row, at now: Timestamp) {
        let acceptedAt = row.timestamp("accepted_at")
        let expiresAt = row.timestamp("expires_at")
        var settlement: Settlement?
        if let outcome = (row["outcome"] as String?).flatMap(Outcome.init(rawValue:)) {
            settlement = Settlement(outcome, code: row["outcome_code"], at: row.timestamp("final_at"))
        } else if row.timestamp("due_at") <= now {
            settlement = Settlement(acceptedAt == expiresAt ? .dropped : .expired, at: expiresAt)
        }
        self.init(
            device: DeviceSerial(row["device"]), app: AppSerial(row["app"]), acceptedAt: acceptedAt,
            expiresAt: expiresAt, settlement: settlement)
    }
}
