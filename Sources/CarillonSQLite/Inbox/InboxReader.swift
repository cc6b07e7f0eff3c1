import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads the facts that ``InboxRules`` needs, inside a transaction.
struct InboxReader {
    private let db: Database
    private let memory: InboxMemory
    private let index: InboxIndexWriter

    private var usage: UsageCache { memory.usage }

    init(_ db: Database, memory: InboxMemory, index: InboxIndexWriter) {
        self.db = db
        self.memory = memory
        self.index = index
    }

    func answer(_ questions: InboxQuestions, into facts: inout InboxFacts, judging effects: Effects) throws {
        facts.effects.formUnion(try effects.counting(questions.effects))
        for origin in questions.origins {
            switch try effects.haveRead(origin) ? .open : state(of: origin) {
            case .open: facts.origins.insert(origin)
            case .closed: facts.closedOrigins.insert(origin)
            case .gone: break
            }
        }
        for origin in questions.originContents { facts.originContents[origin] = try contents(of: origin) }
        for key in questions.claims {
            guard let claim = try claim(key) else { continue }
            facts.claims[key] = claim
            facts.rows[claim.id.position] = try row(at: claim.id.position)
        }
        try rows(at: questions.rows, into: &facts)
        for device in questions.waiting {
            try know(device, \.waiting) { try waiting(of: device, isWoken: questions.woken.contains(device)) }
            facts.usage[device, default: .init()].waiting = usage.usage(of: device).waiting
        }
        for topic in questions.topics where !isKnownToBeEmpty(topic.origin.device) {
            guard let row = try row(of: topic) else { continue }
            facts.topics[topic] = row.position
            facts.rows[row.position] = row
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
        for (quotaKey, moment) in questions.consumers {
            facts.consumers[quotaKey] = try RequestReader(db).waiting(quotaKey, at: moment)
        }
        for device in questions.inboxes {
            facts.inboxes[device] = try rows(of: device)
            facts.originsOfUsers.formUnion(try originsOfUser(of: device))
        }
    }

    // MARK: Rows

    func rows(of device: DeviceSerial, limit: Int = .max) throws -> [InboxRow] {
        var select = try BoundStatement(db, Self.selectWaiting)
        return try index.slots(of: device, isFinal: false, limit: limit).compactMap { slot in
            select.bind(slot.position)
            return try select.first(InboxRow.init(waiting:))
        }
    }

    /// Returns the oldest outcomes of a device.
    func outcomes(of device: DeviceSerial, limit: Int) throws -> [InboxRow] {
        var select = try BoundStatement(db, "SELECT \(InboxRow.finalColumns) FROM outcome WHERE position = ?")
        return try index.slots(of: device, isFinal: true, limit: limit).compactMap { slot in
            select.bind(slot.position)
            return try select.first(InboxRow.init(final:))
        }
    }

    func rows(of origin: DeviceOrigin, thatEnd: Bool) throws -> [InboxRow] {
        try rows(of: origin.device).filter { $0.origin == origin.origin && (!thatEnd || $0.kind.behaviour.endsWithOrigin) }
    }

    private func row(at position: Int64) throws -> InboxRow? { try Self.row(at: position, in: db) }

    private func rows(at positions: some Sequence<Int64>, into facts: inout InboxFacts) throws {
        var waiting = try BoundStatement(db, Self.selectWaiting)
        for position in positions {
            waiting.bind(position)
            facts.rows[position] = try waiting.first(InboxRow.init(waiting:)) ?? Self.finalRow(at: position, in: db)
        }
    }

    /// Returns the row at a position, waiting or final.
    static func row(at position: Int64, in db: Database) throws -> InboxRow? {
        var waiting = try BoundStatement(db, selectWaiting)
        waiting.bind(position)
        return try waiting.first(InboxRow.init(waiting:)) ?? finalRow(at: position, in: db)
    }

    private static let selectWaiting = "SELECT \(InboxRow.waitingColumns) FROM envelope WHERE position = ?"

    private static func finalRow(at position: Int64, in db: Database) throws -> InboxRow? {
        var final = try BoundStatement(db, "SELECT \(InboxRow.finalColumns) FROM outcome WHERE position = ?")
        final.bind(position)
        return try final.first(InboxRow.init(final:))
    }

    private func row(of topic: TopicKey) throws -> InboxRow? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(InboxRow.waitingColumns) FROM envelope
            WHERE origin_kind = ? AND origin = ? AND device = ? AND topic = ? AND topic IS NOT NULL
            """)
        select.bind(topic.origin.origin.kind.rawValue)
        select.bind(topic.origin.origin.serial)
        select.bind(topic.origin.device.rawValue)
        select.bind(topic.topic)
        return try select.first(InboxRow.init(waiting:))
    }

    /// Returns the waiting rows at these positions that are due by a certain time.
    func waitingRows(in positions: ClosedRange<Int64>, dueBy moment: Timestamp, limit: Int) throws -> [InboxRow] {
        try rows(
            """
            SELECT \(InboxRow.waitingColumns) FROM envelope WHERE position BETWEEN ? AND ?
                AND expires_at + iif(expires_at = accepted_at, \(1000 * Envelope.volatileGraceSeconds), 0) <= ? LIMIT ?
            """, positions, moment.milliseconds, Int64(limit), read: InboxRow.init(waiting:))
    }

    /// Returns the waiting rows of TTL 0 at these positions.
    func volatileRows(in positions: ClosedRange<Int64>) throws -> [InboxRow] {
        try rows(
            "SELECT \(InboxRow.waitingColumns) FROM envelope WHERE position BETWEEN ? AND ? AND expires_at = accepted_at",
            positions, read: InboxRow.init(waiting:))
    }

    /// Returns the rows at these positions that became final by the cutoff.
    func finalRows(in positions: ClosedRange<Int64>, by cutoff: RetentionCutoff, limit: Int) throws -> [InboxRow] {
        try rows(
            """
            SELECT \(InboxRow.finalColumns) FROM outcome
            WHERE position BETWEEN ? AND ? AND final_at <= ? AND final_served <= ? LIMIT ?
            """, positions, cutoff.wall.milliseconds, cutoff.served, Int64(limit), read: InboxRow.init(final:))
    }

    /// Returns the least value of the counter of the rows at these positions that became final by a certain time.
    func leastServed(in positions: ClosedRange<Int64>, until moment: Timestamp) throws -> Int64? {
        try Int64.first(
            db,
            """
            SELECT final_served FROM outcome WHERE position BETWEEN ? AND ? AND final_at <= ?
            ORDER BY final_served LIMIT 1
            """, [positions.lowerBound, positions.upperBound, moment.milliseconds])
    }

    func nextFinalRow(in positions: ClosedRange<Int64>, after moment: Timestamp) throws -> InboxRow? {
        try rows(
            """
            SELECT \(InboxRow.finalColumns) FROM outcome
            WHERE position BETWEEN ? AND ? AND final_at > ? ORDER BY final_at LIMIT 1
            """, positions, moment.milliseconds, read: InboxRow.init(final:)
        ).first
    }

    private func rows(
        _ sql: String, _ positions: ClosedRange<Int64>, _ rest: Int64..., read: (StatementColumns) throws -> InboxRow
    ) throws -> [InboxRow] {
        var select = try BoundStatement(db, sql)
        for value in [positions.lowerBound, positions.upperBound] + rest { select.bind(value) }
        return try select.all { try read($0) }
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

    private enum OriginState {
        case open
        /// The channel is closed, and the device was not notified yet.
        case closed
        case gone
    }

    private func state(of origin: OriginKey) throws -> OriginState {
        let sql: String
        switch origin.kind {
        case .channel: sql = "SELECT of_user < 2 FROM channel WHERE serial = ?"
        case .device: sql = "SELECT 1 FROM device WHERE serial = ?"
        case .subscription: sql = "SELECT 1 FROM subscription WHERE serial = ?"
        // An envelope of an update or of a request has an effect, which compares the state of its origin.
        case .update, .request: return .open
        }
        var select = try BoundStatement(db, sql)
        select.bind(origin.serial)
        return try select.first { $0.integer(0) != 0 ? .open : .closed } ?? .gone
    }

    /// Returns channels and subscriptions that were made for the user of a device.
    private func originsOfUser(of device: DeviceSerial) throws -> [OriginKey] {
        let (channels, subscriptions) = (
            "SELECT serial FROM channel WHERE device = ? AND of_user > 0",
            "SELECT serial FROM subscription WHERE device = ? AND user NOT NULL"
        )
        return try [(channels, Origin.Kind.channel), (subscriptions, .subscription)].flatMap { sql, kind in
            try Int64.fetchAll(db.cachedStatement(sql: sql), arguments: [device.rawValue])
                .map { OriginKey(kind: kind, serial: $0) }
        }
    }

    private func contents(of origin: DeviceOrigin) throws -> OriginContents {
        try rows(of: origin, thatEnd: true).reduce(into: OriginContents()) { $0.add($1) }
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

    // MARK: Usage

    private func know<Value>(
        _ device: DeviceSerial, _ part: WritableKeyPath<InboxUsage, Value?>, otherwise read: () throws -> Value
    ) throws {
        var known = usage.usage(of: device)
        guard known[keyPath: part] == nil else { return }
        known[keyPath: part] = try read()
        usage.set(known, of: device)
    }

    /// Whether no envelopes are waiting for a device. False if this is not cached.
    private func isKnownToBeEmpty(_ device: DeviceSerial) -> Bool { usage.usage(of: device).waiting?.envelopes == 0 }

    /// Reads the amount of waiting envelopes of a device. If the device must be woken and its reach is not cached, the same
    /// statement reads the reach. The reach of other devices is not read, so that it does not displace the reach of devices that
    /// are woken.
    private func waiting(of device: DeviceSerial, isWoken: Bool) throws -> InboxUsage.Waiting {
        let readsReach = isWoken && memory.pushes[device] == nil
        let slots =
            try readsReach
            ? ReachReader(db, memory: memory).readWithInbox(of: device) : index.slots(of: device, isFinal: false)
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
    private static let commonColumns = "position, secret, device, app, origin_kind, origin, kind, accepted_at, expires_at"
    /// All columns except the body, which may be long.
    static let waitingColumns = commonColumns + ", size, topic"
    static let finalColumns = commonColumns + ", outcome, code, final_at"

    init(waiting columns: StatementColumns) throws {
        try self.init(columns, byteCount: Int(columns.integer(9)), topic: columns.text(10), finalOutcome: nil)
    }

    init(final columns: StatementColumns) throws {
        guard let outcome = columns.text(9).flatMap(Outcome.init(rawValue:)) else {
            throw StoreFault(.unavailable, "an outcome is unknown")
        }
        let finalOutcome = FinalOutcome(outcome, code: columns.integerIfAny(10).map(Int.init), at: columns.timestamp(11))
        try self.init(columns, byteCount: Envelope.overhead, topic: nil, finalOutcome: finalOutcome)
    }

    private init(_ columns: StatementColumns, byteCount: Int, topic: String?, finalOutcome: FinalOutcome?) throws {
        guard let origin = Origin.Kind(rawValue: Int(columns.integer(4))),
            let kind = EnvelopeKind(rawValue: Int(columns.integer(6)))
        else { throw StoreFault(.unavailable, "an envelope's kind is unknown") }
        self.init(
            id: MessageID(position: columns.integer(0), secret: try columns.bytes16(1)),
            device: DeviceSerial(columns.integer(2)), app: AppSerial(columns.integer(3)),
            origin: OriginKey(kind: origin, serial: columns.integer(5)), kind: kind, topic: topic,
            acceptedAt: columns.timestamp(7), expiresAt: columns.timestamp(8), byteCount: byteCount,
            finalOutcome: finalOutcome)
    }
}
