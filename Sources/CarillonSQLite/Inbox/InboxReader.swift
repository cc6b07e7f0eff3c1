import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Answers what ``InboxRules`` asks, inside a transaction.
struct InboxReader {
    private let db: Database
    private let usage: UsageCache
    private let index: InboxIndexWriter

    init(_ db: Database, usage: UsageCache, index: InboxIndexWriter) {
        self.db = db
        self.usage = usage
        self.index = index
    }

    func answer(_ questions: InboxQuestions, into facts: inout InboxFacts) throws {
        for origin in questions.origins where try isOpen(origin) { facts.origins.insert(origin) }
        for origin in questions.holdings { facts.holdings[origin] = try holding(of: origin) }
        for topic in questions.topics {
            guard let row = try row(of: topic) else { continue }
            facts.topics[topic] = row.position
            facts.rows[row.position] = row
        }
        for key in questions.claims {
            guard let claim = try claim(key) else { continue }
            facts.claims[key] = claim
            facts.rows[claim.id.position] = try row(at: claim.id.position)
        }
        for position in questions.rows { facts.rows[position] = try row(at: position) }
        for device in questions.waiting {
            try know(device, \.waiting) { try waiting(of: device) }
            facts.usage[device, default: .init()].waiting = usage.usage(of: device).waiting
        }
        for device in questions.outcomes {
            try know(device, \.outcomes) { try outcomeCount(of: device) }
            facts.usage[device, default: .init()].outcomes = usage.usage(of: device).outcomes
        }
        for device in questions.keys {
            try know(device, \.keys) { try keyCount(of: device) }
            facts.usage[device, default: .init()].keys = usage.usage(of: device).keys
        }
        for (device, moment) in questions.overdue { facts.overdue[device] = try overdue(of: device, at: moment) }
        for effect in questions.effects where try WatchTransaction(db).counts(effect) { facts.effects.append(effect) }
    }

    // MARK: Rows

    func rows(of device: DeviceSerial, limit: Int = .max) throws -> [InboxRow] {
        let select = try db.cachedStatement(sql: "SELECT \(InboxRow.waitingColumns) FROM envelope WHERE position = ?")
        return try index.slots(of: device, isFinal: false, limit: limit).compactMap { slot in
            try Row.fetchOne(select, arguments: [slot.position]).map(InboxRow.init(waiting:))
        }
    }

    /// The oldest outcomes of a device.
    func outcomes(of device: DeviceSerial, limit: Int) throws -> [InboxRow] {
        let select = try db.cachedStatement(sql: "SELECT * FROM outcome WHERE position = ?")
        return try index.slots(of: device, isFinal: true, limit: limit).compactMap { slot in
            try Row.fetchOne(select, arguments: [slot.position]).map(InboxRow.init(final:))
        }
    }

    func rows(of origin: DeviceOrigin, thatEnd: Bool) throws -> [InboxRow] {
        try rows(of: origin.device).filter { $0.origin == origin.origin && (!thatEnd || $0.kind.behaviour.endsWithOrigin) }
    }

    private func row(at position: Int64) throws -> InboxRow? { try Self.row(at: position, in: db) }

    /// What stands at a position, waiting or final.
    static func row(at position: Int64, in db: Database) throws -> InboxRow? {
        let waiting = try db.cachedStatement(sql: "SELECT \(InboxRow.waitingColumns) FROM envelope WHERE position = ?")
        if let row = try Row.fetchOne(waiting, arguments: [position]) { return try InboxRow(waiting: row) }
        let final = try db.cachedStatement(sql: "SELECT * FROM outcome WHERE position = ?")
        return try Row.fetchOne(final, arguments: [position]).map(InboxRow.init(final:))
    }

    private func row(of topic: TopicKey) throws -> InboxRow? {
        let select = try db.cachedStatement(
            sql: """
                SELECT \(InboxRow.waitingColumns) FROM envelope
                WHERE origin_kind = ? AND origin = ? AND device = ? AND topic = ? AND topic IS NOT NULL
                """)
        let key = topic.origin.origin
        return try Row.fetchOne(
            select, arguments: [key.kind.rawValue, key.serial, topic.origin.device.rawValue, topic.topic]
        ).map(InboxRow.init(waiting:))
    }

    /// What waits at these positions no longer than until a moment.
    func waitingRows(in positions: ClosedRange<Int64>, dueBy moment: Timestamp, limit: Int) throws -> [InboxRow] {
        let select = try db.cachedStatement(
            sql: """
                SELECT \(InboxRow.waitingColumns) FROM envelope WHERE position BETWEEN ? AND ?
                    AND expires_at + iif(expires_at = accepted_at, \(1000 * Envelope.volatileGraceSeconds), 0) <= ? LIMIT ?
                """)
        return try Row.fetchAll(
            select, arguments: [positions.lowerBound, positions.upperBound, moment.milliseconds, limit]
        ).map(InboxRow.init(waiting:))
    }

    /// What waits at these positions of TTL 0.
    func volatileRows(in positions: ClosedRange<Int64>) throws -> [InboxRow] {
        let select = try db.cachedStatement(
            sql: """
                SELECT \(InboxRow.waitingColumns) FROM envelope WHERE position BETWEEN ? AND ? AND expires_at = accepted_at
                """)
        return try Row.fetchAll(select, arguments: [positions.lowerBound, positions.upperBound])
            .map(InboxRow.init(waiting:))
    }

    /// What became final at these positions until a moment.
    func finalRows(in positions: ClosedRange<Int64>, until moment: Timestamp, limit: Int) throws -> [InboxRow] {
        let select = try db.cachedStatement(
            sql: "SELECT * FROM outcome WHERE position BETWEEN ? AND ? AND final_at <= ? LIMIT ?")
        return try Row.fetchAll(
            select, arguments: [positions.lowerBound, positions.upperBound, moment.milliseconds, limit]
        ).map(InboxRow.init(final:))
    }

    func nextFinalRow(in positions: ClosedRange<Int64>, after moment: Timestamp) throws -> InboxRow? {
        let select = try db.cachedStatement(
            sql: "SELECT * FROM outcome WHERE position BETWEEN ? AND ? AND final_at > ? ORDER BY final_at LIMIT 1")
        return try Row.fetchOne(select, arguments: [positions.lowerBound, positions.upperBound, moment.milliseconds])
            .map(InboxRow.init(final:))
    }

    private func overdue(of device: DeviceSerial, at moment: Timestamp) throws -> [InboxRow] {
        if usage.isQuiet(device, at: moment) { return [] }
        var earliest = Timestamp.never
        var overdue: [InboxRow] = []
        for row in try rows(of: device) {
            if row.waitsUntil <= moment { overdue.append(row) } else { earliest = min(earliest, row.waitsUntil) }
        }
        usage.setQuiet(device, until: earliest)
        return overdue
    }

    // MARK: Origins and keys

    private func isOpen(_ origin: OriginKey) throws -> Bool {
        let sql: String
        switch origin.kind {
        case .channel: sql = "SELECT 1 FROM channel WHERE serial = ?"
        case .device: sql = "SELECT 1 FROM device WHERE serial = ?"
        case .subscription, .update, .request: return false
        }
        var select = try BoundStatement(db, sql)
        select.bind(origin.serial)
        return try select.run()
    }

    private func holding(of origin: DeviceOrigin) throws -> OriginHolding {
        try rows(of: origin, thatEnd: true).reduce(into: OriginHolding()) { $0.add($1) }
    }

    private func claim(_ key: ClaimKey) throws -> UsedClaim? {
        let select = try db.cachedStatement(
            sql: "SELECT * FROM idempotency WHERE origin_kind = ? AND origin = ? AND key_hash = ?")
        let arguments: StatementArguments = [key.origin.kind.rawValue, key.origin.serial, Data(key.keyHash)]
        guard let row = try Row.fetchOne(select, arguments: arguments) else { return nil }
        return UsedClaim(
            fingerprint: row.bytes("fingerprint") ?? [], validUntil: row.timestamp("valid_until"),
            id: MessageID(position: row["position"], secret: try row.bytes16("secret")),
            device: DeviceSerial(row["device"]), acceptedAt: row.timestamp("accepted_at"),
            expiresAt: row.timestamp("expires_at"))
    }

    // MARK: How full it is

    private func know<Value>(
        _ device: DeviceSerial, _ part: WritableKeyPath<InboxUsage, Value?>, otherwise read: () throws -> Value
    ) throws {
        var known = usage.usage(of: device)
        guard known[keyPath: part] == nil else { return }
        known[keyPath: part] = try read()
        usage.set(known, of: device)
    }

    private func waiting(of device: DeviceSerial) throws -> InboxUsage.Waiting {
        let slots = try index.slots(of: device, isFinal: false)
        return .init(envelopes: slots.count, bytes: slots.reduce(0) { $0 + $1.size })
    }

    func outcomeCount(of device: DeviceSerial) throws -> Int {
        try index.slots(of: device, isFinal: true).count
    }

    private func keyCount(of device: DeviceSerial) throws -> Int {
        let select = try db.cachedStatement(sql: "SELECT count(*) FROM idempotency WHERE device = ?")
        return try Int.fetchOne(select, arguments: [device.rawValue]) ?? 0
    }
}

extension InboxRow {
    /// All but the body, which may be long.
    static let waitingColumns =
        "position, secret, device, app, origin_kind, origin, kind, size, accepted_at, expires_at, topic"

    init(waiting row: Row) throws { try self.init(row, byteCount: row["size"], topic: row["topic"], settlement: nil) }

    init(final row: Row) throws {
        guard let outcome = Outcome(rawValue: row["outcome"]) else {
            throw StoreFault(.unavailable, "an outcome is unknown")
        }
        let settlement = Settlement(outcome, code: row["code"], at: row.timestamp("final_at"))
        try self.init(row, byteCount: Envelope.overhead, topic: nil, settlement: settlement)
    }

    private init(_ row: Row, byteCount: Int, topic: String?, settlement: Settlement?) throws {
        guard let origin = Origin.Kind(rawValue: row["origin_kind"]), let kind = EnvelopeKind(rawValue: row["kind"]) else {
            throw StoreFault(.unavailable, "an envelope's kind is unknown")
        }
        self.init(
            id: MessageID(position: row["position"], secret: try row.bytes16("secret")),
            device: DeviceSerial(row["device"]), app: AppSerial(row["app"]),
            origin: OriginKey(kind: origin, serial: row["origin"]), kind: kind, topic: topic,
            acceptedAt: row.timestamp("accepted_at"), expiresAt: row.timestamp("expires_at"), byteCount: byteCount,
            settlement: settlement)
    }
}
