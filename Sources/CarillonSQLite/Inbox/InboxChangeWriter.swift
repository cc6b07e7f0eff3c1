import CarillonCore
import CarillonWire
import GRDB
import Metrics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Writes the decisions of ``InboxRules``, inside a transaction.
struct InboxChangeWriter {
    private let db: Database
    private let memory: InboxMemory
    private let index: InboxIndexWriter
    private let reader: InboxReader
    private let settings: StoreSettings

    private var usage: UsageCache { memory.usage }

    init(_ db: Database, memory: InboxMemory, index: InboxIndexWriter, reader: InboxReader, settings: StoreSettings) {
        self.db = db
        self.memory = memory
        self.index = index
        self.reader = reader
        self.settings = settings
    }

    func write(_ changes: InboxChanges, with effects: Effects) throws {
        try effects.write(changes.effects)
        for effect in changes.vainEffects { try effects.giveUp(effect) }
        var wakes: [Int64: Int64] = [:]
        for row in changes.departures { wakes[row.position] = try remove(row) }
        for row in changes.notified { try CompletionTransaction(db).finished(row) }
        for row in changes.outcomes { try insert(outcome: row, wake: wakes[row.position]) }
        for end in changes.ends { try write(end) }
        for arrival in changes.arrivals { try insert(arrival) }
        for (position, code) in changes.amendments {
            try db.cachedStatement(sql: "UPDATE outcome SET code = ? WHERE position = ?")
                .execute(arguments: [code, position])
        }
        for (key, claim) in changes.claims { try insert(key, claim) }
        for (device, count) in changes.forgottenOutcomes { try forgetOutcomes(count, of: device) }
        for (device, count) in changes.forgottenKeys { try forgetKeys(count, of: device) }
        usage.apply(changes.usage)
        for (device, at) in changes.answered { try wakeTable.answered(device, at: at) }
    }

    private var wakeTable: WakeTable { WakeTable(db, memory: memory) }

    // MARK: Waiting envelopes

    private func insert(_ arrival: InboxChanges.Arrival) throws {
        let envelope = arrival.envelope
        let wake = try wakeTable.arrived(envelope, arrival.wake)
        var content: Envelope.Content?
        var shared: SharedContentID?
        var body: [UInt8]?
        var code: Int?
        switch envelope.kind {
        case .message(let message):
            content = message
            shared = message.shared
            body = message.shared == nil ? message.body : nil
        case .fired(let notification, let countsBadge): (body, code) = (notification, countsBadge ? 1 : 0)
        case .update(let copy):
            shared = copy.shared
            body = copy.shared == nil ? copy.body : nil
            code = copy.entry << Envelope.UpdateCopy.attemptBits | copy.attempt
        case .retraction(let entry): code = entry
        case .service(_, let event): body = event
        case .channelError(let number): code = number
        case .pingFailed(let failure): code = failure.rawValue
        case .deviceStatus(let status): code = status.reason?.number
        case .channelClosed, .recovered: break
        }
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO envelope (position, secret, device, app, origin_kind, origin, origin_id, kind, code, size,
                accepted_at, expires_at, topic, coding, encryption, crypto_key, urgency, wake, content, body)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        insert.bind(envelope.position)
        insert.bind(envelope.id.secret)
        insert.bind(envelope.device.rawValue)
        insert.bind(envelope.app.rawValue)
        insert.bind(envelope.origin.kind.rawValue)
        insert.bind(envelope.origin.serial)
        insert.bind(envelope.origin.id)
        insert.bind(envelope.kind.number.rawValue)
        insert.bind(code)
        insert.bind(envelope.byteCount)
        insert.bind(envelope.acceptedAt.milliseconds)
        insert.bind(envelope.expiresAt.milliseconds)
        insert.bind(arrival.topic)
        insert.bind(content?.coding?.name.rawValue)
        insert.bind(content?.coding?.encryption)
        insert.bind(content?.coding?.cryptoKey)
        insert.bind(envelope.urgency.number)
        insert.bind(wake.number)
        insert.bind(shared?.rawValue)
        insert.bind(body)
        try insert.run()
        index.add(arrival.row)
        try memory.due.add(arrival.row, in: db)
        usage.arrived(arrival.row)
    }

    /// Removes a waiting envelope. Returns its wake mode; nil if the envelope was not waiting.
    private func remove(_ row: InboxRow) throws -> Int64? {
        var delete = try BoundStatement(db, "DELETE FROM envelope WHERE position = ? RETURNING wake")
        delete.bind(row.position)
        var wake: Int64?
        // All rows are read, because the statement is complete only then.
        try delete.forEachRow { columns in
            wake = columns.integer(0)
            return true
        }
        try index.remove(row)
        return wake
    }

    // MARK: Outcomes

    private func insert(outcome row: InboxRow, wake: Int64?) throws {
        guard let finalOutcome = row.finalOutcome else { return }
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO outcome (position, secret, device, app, origin_kind, origin, kind, accepted_at, expires_at,
                outcome, code, final_at, wake, final_served)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT seconds FROM served))
            """)
        insert.bind(row.position)
        insert.bind(row.id.secret)
        insert.bind(row.device.rawValue)
        insert.bind(row.app.rawValue)
        insert.bind(row.origin.kind.rawValue)
        insert.bind(row.origin.serial)
        insert.bind(row.kind.rawValue)
        insert.bind(row.acceptedAt.milliseconds)
        insert.bind(row.expiresAt.milliseconds)
        insert.bind(finalOutcome.outcome.rawValue)
        insert.bind(finalOutcome.code)
        insert.bind(finalOutcome.at.milliseconds)
        insert.bind(wake)
        try insert.run()
        index.add(row)
        try memory.due.add(row, in: db)
    }

    /// Removes outcomes whose retention time is over.
    func forget(_ rows: [InboxRow]) throws {
        var changes: [DeviceSerial: InboxUsage.Change] = [:]
        for row in rows {
            try remove(outcome: row)
            changes[row.device, default: .init()].outcomes -= 1
        }
        usage.apply(changes)
    }

    /// Removes the oldest outcomes of a device. The caller must change the usage.
    func forgetOutcomes(_ count: Int, of device: DeviceSerial) throws {
        let rows = try reader.outcomes(of: device, limit: count)
        for row in rows { try remove(outcome: row) }
        db.count(rows.count, of: Self.outcomesForgotten)
    }

    private func remove(outcome row: InboxRow) throws {
        try db.cachedStatement(sql: "DELETE FROM outcome WHERE position = ?").execute(arguments: [row.position])
        try index.remove(row)
    }

    private static let outcomesForgotten = ServerMetric.outcomesForgotten.counter()

    // MARK: Origins

    private func write(_ end: InboxChanges.End) throws {
        let origin = end.origin.origin
        if origin.kind == .channel {
            try WatchTransaction(db).channelsEnd(
                "serial = ?", [origin.serial], because: end.reason, at: end.at, limits: settings.callbacks)
            try db.run("DELETE FROM channel WHERE serial = ?", [origin.serial])
        } else if origin.kind == .subscription {
            try SubscriptionTable(db).remove("serial = ?", [origin.serial])
        }
        try self.end(reader.rows(of: end.origin, thatEnd: true), at: end.at)
    }

    /// Ends waiting envelopes whose origin or device does not exist any more. The caller must change the usage.
    func end(_ rows: [InboxRow], at now: Timestamp) throws {
        for row in rows {
            let wake = try remove(row)
            guard row.kind.behaviour.keepsOutcome else { continue }
            var ended = row
            ended.finalOutcome = row.waitsUntil <= now ? row.timeOver : FinalOutcome(.gone, at: now)
            try insert(outcome: ended, wake: wake)
        }
    }

    // MARK: Idempotency keys

    private func insert(_ key: ClaimKey, _ claim: UsedClaim) throws {
        let insert = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO idempotency (origin_kind, origin, key_hash, fingerprint, position, secret, device,
                    accepted_at, expires_at, valid_until, made_served)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT seconds FROM served))
                """)
        try insert.execute(arguments: [
            key.origin.kind.rawValue, key.origin.serial, Data(key.keyHash), Data(claim.fingerprint), claim.id.position,
            claim.id.secret.data, claim.device.rawValue, claim.acceptedAt.milliseconds, claim.expiresAt.milliseconds,
            claim.validUntil.milliseconds,
        ])
    }

    private func forgetKeys(_ count: Int, of device: DeviceSerial) throws {
        try db.run(
            """
            DELETE FROM idempotency WHERE (origin_kind, origin, key_hash) IN
                (SELECT origin_kind, origin, key_hash FROM idempotency WHERE device = ? ORDER BY valid_until LIMIT ?)
            """,
            [device.rawValue, count])
        db.count(db.changesCount, of: Self.keysForgotten)
    }

    /// Removes keys whose retention time is over. Returns the number of removed keys.
    func forgetKeys(by retention: RetentionTime, limit: Int) throws -> Int {
        let rows = try Row.fetchAll(
            db,
            sql: """
                DELETE FROM idempotency WHERE (origin_kind, origin, key_hash) IN
                    (SELECT origin_kind, origin, key_hash FROM idempotency INDEXED BY idempotency_end
                        WHERE made_served <= ? AND valid_until <= ? LIMIT ?)
                RETURNING device
                """,
            arguments: [
                retention.cutoff(afterSeconds: IdempotencyClaim.keptSeconds).served, retention.now.milliseconds, limit,
            ])
        var changes: [DeviceSerial: InboxUsage.Change] = [:]
        for row in rows { changes[DeviceSerial(row["device"]), default: .init()].keys -= 1 }
        usage.apply(changes)
        return rows.count
    }

    private static let keysForgotten = ServerMetric.idempotencyKeysForgotten.counter()

    // MARK: Shared bodies

    func forgetReleasedContent() throws {
        try db.run(
            """
            DELETE FROM shared_content WHERE is_released
                AND NOT EXISTS (SELECT 1 FROM envelope WHERE content = shared_content.serial)
            """)
    }
}
