import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Changes of the inboxes inside one transaction.
struct InboxTransaction {
    private let db: Database
    private let usage: InboxUsage
    private let settings: SQLiteStore.Settings

    init(_ db: Database, usage: InboxUsage, settings: SQLiteStore.Settings) {
        self.db = db
        self.usage = usage
        self.settings = settings
    }

    func perform(_ operation: InboxOperation) throws -> InboxResult {
        switch operation {
        case .append(let envelope, let rules):
            return try append(envelope, rules)
        case .settle(let id, let device, let settlement):
            return try settle(id, device: device, settlement)
        case .record(let envelope, let rules, let settlement):
            return try record(envelope, rules, settlement)
        case .replace(let envelope, let rules):
            return .recorded(replaced: try replace(rules.topic, by: envelope))
        case .forget(let id):
            return try forget(id)
        }
    }

    // MARK: Entering

    private func append(_ envelope: Envelope, _ rules: AppendRules) throws -> InboxResult {
        if let earlier = try claim(rules.idempotency, for: envelope) { return earlier }
        switch envelope.kind {
        case .message:
            let select = try db.cachedStatement(sql: "SELECT 1 FROM channel WHERE serial = ?")
            guard try Int.fetchOne(select, arguments: [envelope.channel.rawValue]) != nil else {
                try releaseClaim(rules, envelope)
                return .channelGone
            }
            guard try envelope.isVolatile || hasRoom(for: envelope, insteadOf: rules.topic) else {
                try releaseClaim(rules, envelope)
                return .full
            }
        case .channelClosed, .channelError:
            guard try close(envelope.channel, of: envelope.device, because: .revoked, at: envelope.acceptedAt) else {
                return .channelGone
            }
        case .pingFailed, .recovered:
            guard let change = rules.watch, try WatchTransaction(db).apply(change) else { return .channelGone }
        }
        let replaced = try replace(rules.topic, by: envelope)
        try insert(envelope, topic: envelope.isVolatile ? nil : rules.topic, settlement: nil)
        usage.added(envelope.byteCount, to: envelope.device)
        return .stored(replaced: replaced)
    }

    private func record(
        _ envelope: Envelope, _ rules: AppendRules, _ settlement: Settlement
    ) throws -> InboxResult {
        if let earlier = try claim(rules.idempotency, for: envelope) { return earlier }
        let replaced = try replace(rules.topic, by: envelope)
        try insert(envelope, topic: nil, settlement: settlement)
        try ended(of: envelope.device)
        return .recorded(replaced: replaced)
    }

    private func insert(_ envelope: Envelope, topic: String?, settlement: Settlement?) throws {
        var content: Envelope.Content?
        var eventCode: Int?
        var kind = 0
        switch envelope.kind {
        case .message(let message): content = settlement == nil ? message : nil
        case .channelClosed: kind = 1
        case .channelError(let code):
            kind = 2
            eventCode = code
        case .pingFailed(let failure):
            kind = 3
            eventCode = failure.rawValue
        case .recovered: kind = 4
        }
        let due = settlement.map { forgetting(after: $0.at) } ?? dueTime(of: envelope)
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO envelope (position, secret, device, app, channel, channel_id, kind, event_code, topic, coding,
                    encryption, crypto_key, body, accepted_at, expires_at, outcome, outcome_code, final_at, due_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        try insert.execute(arguments: [
            envelope.position, envelope.id.secret.data, envelope.device.rawValue, envelope.app.rawValue,
            envelope.channel.rawValue, envelope.channelID.value.data, kind, eventCode, topic,
            content?.coding?.name.rawValue, content?.coding?.encryption, content?.coding?.cryptoKey,
            content.map { Data($0.body) }, envelope.acceptedAt.milliseconds, envelope.expiresAt.milliseconds,
            settlement?.outcome.rawValue, settlement?.code, settlement?.at.milliseconds, due.milliseconds,
        ])
    }

    private func dueTime(of envelope: Envelope) -> Timestamp {
        envelope.isVolatile ? envelope.acceptedAt.adding(seconds: Envelope.volatileGraceSeconds) : envelope.expiresAt
    }

    private func forgetting(after moment: Timestamp) -> Timestamp {
        moment.adding(seconds: settings.outcomeRetentionSeconds)
    }

    /// - Parameter topic: The message of this topic will make room.
    private func hasRoom(for envelope: Envelope, insteadOf topic: String?) throws -> Bool {
        if try fits(envelope, freeing: .init()) { return true }
        try sweep(device: envelope.device, at: envelope.acceptedAt)
        guard let row = try waitingRow(of: topic, on: envelope.channel) else {
            return try fits(envelope, freeing: .init())
        }
        return try fits(envelope, freeing: .init(envelopes: 1, bytes: row["length"] + Envelope.overhead))
    }

    private func fits(_ envelope: Envelope, freeing freed: InboxUsage.Amount) throws -> Bool {
        let amount = try usage.amount(of: envelope.device) { try readUsage(of: envelope.device) }
        return amount.envelopes - freed.envelopes < settings.inboxEnvelopes
            && amount.bytes - freed.bytes + envelope.byteCount <= settings.inboxBytes
    }

    private func readUsage(of device: DeviceSerial) throws -> InboxUsage.Amount {
        let select = try db.cachedStatement(
            sql: """
                SELECT count(*) AS envelopes, coalesce(sum(coalesce(length(body), 0) + \(Envelope.overhead)), 0) AS bytes
                FROM envelope WHERE device = ? AND outcome IS NULL
                """)
        guard let row = try Row.fetchOne(select, arguments: [device.rawValue]) else { return InboxUsage.Amount() }
        return InboxUsage.Amount(envelopes: row["envelopes"], bytes: row["bytes"])
    }

    /// The claim of a message that was refused does not stand: a repetition may succeed.
    private func releaseClaim(_ rules: AppendRules, _ envelope: Envelope) throws {
        guard let claim = rules.idempotency else { return }
        try db.execute(
            sql: "DELETE FROM idempotency WHERE channel = ? AND key_hash = ?",
            arguments: [envelope.channel.rawValue, Data(claim.keyHash)])
        RowAllowance.keys(db, usage, settings).removed(1, for: envelope.device)
    }

    // MARK: Idempotency

    /// Takes the key for this envelope. Answers with the earlier use when there is one.
    private func claim(_ claim: IdempotencyClaim?, for envelope: Envelope) throws -> InboxResult? {
        guard let claim else { return nil }
        let select = try db.cachedStatement(
            sql: "SELECT * FROM idempotency WHERE channel = ? AND key_hash = ? AND valid_until > ?")
        let arguments: StatementArguments = [
            envelope.channel.rawValue, Data(claim.keyHash), envelope.acceptedAt.milliseconds,
        ]
        if let row = try Row.fetchOne(select, arguments: arguments) {
            guard row.bytes("fingerprint") == claim.fingerprint else { return .keyReused }
            let id = MessageID(position: row["position"], secret: try row.bytes16("secret"))
            return .duplicate(
                of: id, acceptedAt: row.timestamp("accepted_at"), expiresAt: row.timestamp("expires_at"),
                outcome: try outcome(of: id, at: envelope.acceptedAt))
        }
        try db.execute(
            sql: """
                INSERT OR REPLACE INTO idempotency (channel, key_hash, fingerprint, position, secret, accepted_at,
                    expires_at, valid_until, device) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                envelope.channel.rawValue, Data(claim.keyHash), Data(claim.fingerprint), envelope.position,
                envelope.id.secret.data, envelope.acceptedAt.milliseconds, envelope.expiresAt.milliseconds,
                claim.validUntil.milliseconds, envelope.device.rawValue,
            ])
        try RowAllowance.keys(db, usage, settings).added(1, for: envelope.device)
        return nil
    }

    private func outcome(of id: MessageID, at now: Timestamp) throws -> Outcome? {
        let row = try Row.fetchOne(db, sql: "SELECT * FROM envelope WHERE position = ?", arguments: [id.position])
        return row.flatMap { MessageRecord(row: $0, at: now).settlement?.outcome }
    }

    // MARK: Leaving

    private func settle(_ id: MessageID, device: DeviceSerial?, _ settlement: Settlement) throws -> InboxResult {
        let select = try db.cachedStatement(
            sql: """
                SELECT position, kind, device, secret, outcome, due_at, coalesce(length(body), 0) AS length
                FROM envelope WHERE position = ?
                """)
        guard let row = try Row.fetchOne(select, arguments: [id.position]), try row.bytes16("secret") == id.secret,
            device == nil || device?.rawValue == row["device"]
        else { return .notWaiting }
        if let outcome = row["outcome"] as String? {
            try amend(id, outcome: outcome, with: settlement, byDevice: device != nil)
            return .notWaiting
        }
        guard row["due_at"] > settlement.at.milliseconds else { return .notWaiting }
        try leave(row, settlement)
        usage.removed(row["length"] + Envelope.overhead, from: DeviceSerial(row["device"]))
        return .settled
    }

    /// Removes a message of TTL 0 without a trace.
    private func forget(_ id: MessageID) throws -> InboxResult {
        let select = try db.cachedStatement(
            sql: """
                SELECT secret, device, coalesce(length(body), 0) AS length FROM envelope
                WHERE position = ? AND outcome IS NULL AND accepted_at = expires_at
                """)
        guard let row = try Row.fetchOne(select, arguments: [id.position]), try row.bytes16("secret") == id.secret else {
            return .notWaiting
        }
        try remove(id.position)
        usage.removed(row["length"] + Envelope.overhead, from: DeviceSerial(row["device"]))
        return .settled
    }

    private func remove(_ position: Int64) throws {
        let delete = try db.cachedStatement(sql: "DELETE FROM envelope WHERE position = ?")
        try delete.execute(arguments: [position])
    }

    /// A message of the device has its outcome; the oldest that are too many are forgotten.
    private func ended(of device: DeviceSerial) throws {
        try RowAllowance.outcomes(db, usage, settings).added(1, for: device)
    }

    /// A device may acknowledge a message and then say that its handler failed: the outcome stays, the code is added.
    private func amend(_ id: MessageID, outcome: String, with settlement: Settlement, byDevice: Bool) throws {
        guard byDevice, outcome == Outcome.acknowledged.rawValue, settlement.outcome == .failed,
            let code = settlement.code, code >= ResultCode.handlerFailed
        else { return }
        try db.execute(
            sql: "UPDATE envelope SET outcome_code = ? WHERE position = ?", arguments: [code, id.position])
    }

    /// News of a back end has no sender who could ask for its outcome, and there may be a great deal of it.
    private func leave(_ row: Row, _ settlement: Settlement) throws {
        guard row["kind"] as Int >= 3 else {
            return try finish(row["position"], of: DeviceSerial(row["device"]), settlement)
        }
        try remove(row["position"])
    }

    private func finish(_ position: Int64, of device: DeviceSerial, _ settlement: Settlement) throws {
        let update = try db.cachedStatement(
            sql: """
                UPDATE envelope SET outcome = ?, outcome_code = ?, final_at = ?, due_at = ?, topic = NULL, body = NULL,
                    coding = NULL, encryption = NULL, crypto_key = NULL
                WHERE position = ?
                """)
        try update.execute(arguments: [
            settlement.outcome.rawValue, settlement.code, settlement.at.milliseconds,
            forgetting(after: settlement.at).milliseconds, position,
        ])
        try ended(of: device)
    }

    private func replace(_ topic: String?, by envelope: Envelope) throws -> MessageID? {
        // A message of TTL 0 may come here later than a newer one of its topic.
        guard let row = try waitingRow(of: topic, on: envelope.channel), row["position"] < envelope.position else {
            return nil
        }
        let id = MessageID(position: row["position"], secret: try row.bytes16("secret"))
        let isExpired = row["expires_at"] <= envelope.acceptedAt.milliseconds
        try leave(
            row,
            Settlement(
                isExpired ? .expired : .replaced, at: isExpired ? row.timestamp("expires_at") : envelope.acceptedAt))
        usage.removed(row["length"] + Envelope.overhead, from: envelope.device)
        return id
    }

    private func waitingRow(of topic: String?, on channel: ChannelSerial) throws -> Row? {
        guard let topic else { return nil }
        let select = try db.cachedStatement(
            sql: """
                SELECT position, kind, secret, device, expires_at, coalesce(length(body), 0) AS length FROM envelope
                WHERE channel = ? AND topic = ? AND outcome IS NULL AND topic IS NOT NULL
                """)
        return try Row.fetchOne(select, arguments: [channel.rawValue, topic])
    }

    /// Removes the channel and ends what waits on it. Answers whether it was open.
    func close(
        _ channel: ChannelSerial, of device: DeviceSerial, because reason: DisconnectReason, at now: Timestamp
    ) throws -> Bool {
        try WatchTransaction(db).channelsEnd(
            "serial = ?", [channel.rawValue], because: reason, at: now, limits: settings.callbacks)
        try db.execute(sql: "DELETE FROM channel WHERE serial = ?", arguments: [channel.rawValue])
        guard db.changesCount == 1 else { return false }
        try end("device = ? AND channel = ? AND kind NOT IN (1, 2)", [device.rawValue, channel.rawValue], at: now)
        try endedMany(of: device)
        return true
    }

    func endAll(of device: DeviceSerial, at now: Timestamp) throws {
        try end("device = ?", [device.rawValue], at: now)
        try endedMany(of: device)
    }

    private func endedMany(of device: DeviceSerial) throws {
        usage.forget(device)
        try RowAllowance.outcomes(db, usage, settings).added(0, for: device)
    }

    private func end(_ condition: String, _ arguments: StatementArguments, at now: Timestamp) throws {
        try db.execute(
            sql: """
                UPDATE envelope SET outcome = CASE WHEN due_at <= ? THEN ? ELSE ? END, final_at = min(due_at, ?),
                    due_at = ?, topic = NULL, body = NULL, coding = NULL, encryption = NULL, crypto_key = NULL
                WHERE outcome IS NULL AND \(condition)
                """,
            arguments: [
                now.milliseconds, Outcome.expired.rawValue, Outcome.gone.rawValue, now.milliseconds,
                forgetting(after: now).milliseconds,
            ] + arguments)
    }

    // MARK: Time

    /// Ends what has expired, and forgets what is past keeping.
    func sweep(at now: Timestamp, limit: Int) throws -> Swept {
        let select = try db.cachedStatement(
            sql: """
                SELECT position, device, outcome, accepted_at, expires_at, coalesce(length(body), 0) AS length
                FROM envelope WHERE due_at <= ? ORDER BY due_at LIMIT ?
                """)
        let rows = try Row.fetchAll(select, arguments: [now.milliseconds, limit])
        var expired: [Swept.Expired] = []
        for row in rows {
            if row["outcome"] as String? == nil {
                try expire(row)
                expired.append(.init(device: DeviceSerial(row["device"]), position: row["position"]))
            } else {
                try remove(row["position"])
                RowAllowance.outcomes(db, usage, settings).removed(1, for: DeviceSerial(row["device"]))
            }
        }
        let keys = try Row.fetchAll(
            db,
            sql: """
                DELETE FROM idempotency WHERE (channel, key_hash) IN
                    (SELECT channel, key_hash FROM idempotency WHERE valid_until <= ? ORDER BY valid_until LIMIT ?)
                RETURNING device
                """,
            arguments: [now.milliseconds, limit])
        for key in keys { RowAllowance.keys(db, usage, settings).removed(1, for: DeviceSerial(key["device"])) }
        return Swept(expired: expired, isDone: rows.count < limit && keys.count < limit)
    }

    /// No connection outlives the process that it was given by: what it was given of TTL 0 and did not answer for is lost.
    func dropVolatile() throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT position, device, accepted_at, expires_at, coalesce(length(body), 0) AS length FROM envelope
                WHERE due_at <= (unixepoch() + 2 * \(Envelope.volatileGraceSeconds)) * 1000
                    AND outcome IS NULL AND accepted_at = expires_at
                """)
        for row in rows { try expire(row) }
    }

    private func sweep(device: DeviceSerial, at now: Timestamp) throws {
        let select = try db.cachedStatement(
            sql: """
                SELECT position, device, outcome, accepted_at, expires_at, coalesce(length(body), 0) AS length
                FROM envelope WHERE device = ? AND outcome IS NULL AND due_at <= ?
                """)
        for row in try Row.fetchAll(select, arguments: [device.rawValue, now.milliseconds]) { try expire(row) }
    }

    private func expire(_ row: Row) throws {
        let isVolatile = row["accepted_at"] as Int64 == row["expires_at"]
        try finish(
            row["position"], of: DeviceSerial(row["device"]),
            Settlement(isVolatile ? .dropped : .expired, at: row.timestamp("expires_at")))
        usage.removed(row["length"] + Envelope.overhead, from: DeviceSerial(row["device"]))
    }
}
