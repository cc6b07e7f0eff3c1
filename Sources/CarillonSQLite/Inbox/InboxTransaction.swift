import CarillonCore
import CarillonWire
import GRDB

/// Changes of the inboxes inside one transaction, as ``InboxRules`` decides them.
final class InboxTransaction {
    private let db: Database
    private let usage: UsageCache
    private let settings: StoreSettings
    private let rules: InboxRules
    private let reader: InboxReader
    private let writer: InboxChangeWriter
    private(set) var tally = InboxTally()

    init(_ db: Database, usage: UsageCache, settings: StoreSettings) {
        self.db = db
        self.usage = usage
        self.settings = settings
        rules = InboxRules(limits: settings.inbox)
        reader = InboxReader(db, usage: usage)
        writer = InboxChangeWriter(db, usage: usage, settings: settings)
    }

    func perform(_ operations: [InboxOperation]) throws -> [InboxResult] {
        var asked = rules.questions(for: operations)
        var facts = InboxFacts()
        try reader.answer(asked, into: &facts)
        while true {
            switch rules.decide(operations, knowing: facts, asked: asked) {
            case .decided(let results, let changes):
                try writer.write(changes)
                tally.add(changes.tally)
                return results
            case .needs(let more):
                try reader.answer(more, into: &facts)
                asked.formUnion(more)
            }
        }
    }

    /// Ends all that waits for a device that is no more.
    func endAll(of device: DeviceSerial, at now: Timestamp) throws {
        let rows = try reader.rows(of: device)
        try writer.end(rows, at: now)
        for row in rows {
            tally.ended(row.kind, .gone)
            tally.waiting.envelopes -= 1
            tally.waiting.bytes -= row.byteCount
        }
        usage.forget(device)
        let excess = try reader.outcomeCount(of: device) - settings.inbox.outcomes
        if excess > 0 { try writer.forgetOutcomes(excess, of: device) }
    }

    /// No connection outlives the process that it was given by: what it was given of TTL 0 and did not answer for is lost.
    func dropVolatile() throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT envelope.* FROM due JOIN envelope ON envelope.position = due.position
                WHERE bucket <= (unixepoch() + 2 * \(Envelope.volatileGraceSeconds)) * 1000 AND accepted_at = expires_at
                """)
        for row in rows {
            let row = try InboxRow(waiting: row)
            _ = try perform([.expire(row.id, at: row.waitsUntil)])
        }
    }

    /// Adds to the totals what the changes came to; to be called once, after the last of them.
    func writeTotals() throws {
        guard tally.waiting != InboxUsage.Waiting() else { return }
        try db.cachedStatement(sql: "UPDATE inbox_total SET envelopes = envelopes + ?, bytes = bytes + ?")
            .execute(arguments: [tally.waiting.envelopes, tally.waiting.bytes])
    }

    // MARK: Time

    /// Ends what has expired, and forgets what is past keeping.
    func sweep(at now: Timestamp, limit: Int) throws -> Swept {
        let due = try Row.fetchAll(
            db, sql: "SELECT bucket, position FROM due WHERE bucket <= ? ORDER BY bucket, position LIMIT ?",
            arguments: [now.milliseconds, limit])
        var facts = InboxFacts()
        var questions = InboxQuestions()
        questions.rows = Set(due.map { $0["position"] })
        try reader.answer(questions, into: &facts)
        var expirations: [InboxRow] = []
        var forgotten: [InboxRow] = []
        for entry in due {
            let position: Int64 = entry["position"]
            guard let row = facts.rows[position] else {
                try writer.removeDue(bucket: entry["bucket"], position)
                continue
            }
            if row.settlement == nil { expirations.append(row) } else { forgotten.append(row) }
        }
        let ended = try perform(expirations.map { .expire($0.id, at: now) })
        try writer.forget(forgotten)
        let keys = try writer.forgetKeys(before: now, limit: limit)
        try writer.forgetReleasedContent()
        let expired = zip(expirations, ended).filter { $1 == .settled }.map { row, _ in
            Swept.Expired(device: row.device, position: row.position)
        }
        return Swept(expired: expired, isDone: due.count < limit && keys < limit)
    }
}
