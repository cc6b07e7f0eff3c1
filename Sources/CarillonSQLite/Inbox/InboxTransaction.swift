import CarillonCore
import CarillonWire
import GRDB

/// Changes inboxes inside one transaction, as ``InboxRules`` decides.
final class InboxTransaction {
    private let db: Database
    private let memory: InboxMemory
    private let settings: StoreSettings
    private let rules: InboxRules
    private let index: InboxIndexWriter
    private let reader: InboxReader
    private let writer: InboxChangeWriter
    private(set) var tally = InboxTally()

    init(_ db: Database, memory: InboxMemory, settings: StoreSettings) {
        self.db = db
        self.memory = memory
        self.settings = settings
        rules = InboxRules(limits: settings.inbox)
        index = InboxIndexWriter(db, index: memory.index)
        reader = InboxReader(db, memory: memory, index: index)
        writer = InboxChangeWriter(db, memory: memory, index: index, reader: reader, settings: settings)
    }

    func perform(_ operations: [InboxOperation]) throws -> [InboxResult] { try performed(operations).results }

    /// Ends envelopes for the former user of a device. Returns their positions.
    func changeUser(of device: DeviceSerial, hadUser: Bool, at now: Timestamp) throws -> [Int64] {
        try performed([.changeUser(device, hadUser: hadUser, at: now)]).changes.departures.map(\.position)
    }

    private func performed(_ operations: [InboxOperation]) throws -> (results: [InboxResult], changes: InboxChanges) {
        var asked = rules.questions(for: operations)
        var facts = InboxFacts()
        let effects = Effects(db, memory: memory)
        try reader.answer(asked, into: &facts, judging: effects)
        while true {
            switch rules.decide(operations, knowing: facts, asked: asked) {
            case .decided(let results, let changes):
                try writer.write(changes, with: effects)
                tally.add(changes.tally)
                return (results, changes)
            case .needs(let more):
                try reader.answer(more, into: &facts, judging: effects)
                asked.formUnion(more)
            }
        }
    }

    /// Removes envelopes from their inboxes. Their subject was ended before, in the same transaction.
    func takeOut(_ envelopes: [MessageID], at now: Timestamp) throws {
        guard !envelopes.isEmpty else { return }
        _ = try perform(envelopes.map { .finish($0, device: nil, FinalOutcome(.cancelled, at: now)) })
    }

    /// Ends up to a limit of waiting envelopes of a deleted device. Returns the number of removed rows, and whether none is left.
    func end(_ limit: Int, of device: DeviceSerial, at now: Timestamp) throws -> (count: Int, isDone: Bool) {
        let rows = try reader.rows(of: device, limit: limit)
        try writer.end(rows, at: now)
        for row in rows {
            tally.ended(row.kind, .gone)
            tally.waiting.envelopes -= 1
            tally.waiting.bytes -= row.byteCount
        }
        memory.usage.forget(device)
        guard rows.count < limit else { return (rows.count, false) }
        let excess = try reader.outcomeCount(of: device) - settings.inbox.outcomes
        let forgotten = min(max(0, excess), limit - rows.count)
        if forgotten > 0 { try writer.forgetOutcomes(forgotten, of: device) }
        return (rows.count + forgotten, excess <= forgotten)
    }

    /// Ends all data of a device that ends with its user.
    ///
    /// - Parameter hadUser: Whether the device had a user before.
    /// - Returns: The positions of the envelopes that ended.
    func changeUser(of registration: DeviceRegistration, in app: AppSerial, hadUser: Bool, at now: Timestamp) throws
        -> [Int64]
    {
        let pushes = PushTable(db, memory: memory, settings: settings)
        let change = UserChangeTable(db, callbacks: settings.callbacks, requests: memory.requests)
        if hadUser { try pushes.cancelOfUser(of: registration.device, at: now) }
        let ended = try changeUser(of: registration.device, hadUser: hadUser, at: now)
        try pushes.cancel(of: registration.device, forEndedAt: ended, at: now)
        try change.end(of: registration, in: app, hadUser: hadUser, at: now)
        return ended
    }

    /// Ends the service requests from and to a deleted device.
    func endRequests(of device: DeviceSerial) throws {
        try RequestTable(db, memory: memory.requests).write(RequestRules().end(of: device, because: .deviceDeleted))
    }

    /// Cancels the pushes of a deleted device that were not sent yet.
    func cancelPushes(of device: DeviceSerial, at now: Timestamp) throws {
        try PushTable(db, memory: memory, settings: settings).cancelAll(of: device, at: now)
    }

    /// Drops envelopes of TTL 0 that were delivered by an earlier process and not answered, because its connections do not exist
    /// any more.
    func dropVolatile(at now: Timestamp) throws {
        // Twice the longest time until such an envelope is due, in case the clock was set back.
        let end = now.adding(seconds: 4 * Envelope.volatileGraceSeconds)
        for positions in Set(try DueTimes.entries(by: end, limit: .max, in: db).map(\.positions)) {
            for row in try reader.volatileRows(in: positions) { _ = try perform([.expire(row.id, at: row.waitsUntil)]) }
        }
    }

    /// Writes the data that is written once for all changes. This must be called after the last change.
    func finish() throws {
        try index.finish()
        guard tally.waiting != InboxUsage.Waiting() else { return }
        try CounterTable(db).add(tally.waiting)
    }

    // MARK: Time

    /// Ends expired envelopes, and removes outcomes and keys whose retention time is over.
    func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) throws -> Swept {
        let released = try retention.map { try memory.due.releaseHeld(by: $0, limit: limit, in: db) } ?? 0
        let cutoff = retention.map { memory.due.cutoff(by: $0) }
        let entries = try DueTimes.entries(by: now, limit: limit, in: db)
        var swept: [Swept.Expired] = []
        var (entriesDone, rowsDone) = (0, 0)
        for entry in entries {
            guard rowsDone < limit else { break }
            let expired = try reader.waitingRows(in: entry.positions, dueBy: now, limit: limit)
            let results = try perform(expired.map { .expire($0.id, at: now) })
            for (row, result) in zip(expired, results) where result == .finished {
                swept.append(.init(device: row.device, position: row.position))
            }
            let forgotten = try cutoff.map { try reader.finalRows(in: entry.positions, by: $0, limit: limit) } ?? []
            try writer.forget(forgotten)
            rowsDone += expired.count + forgotten.count
            // There may be more rows if the limit was reached.
            guard expired.count < limit, forgotten.count < limit else { break }
            try memory.due.remove(entry, in: db)
            try keep(entry, retention, at: now)
            entriesDone += 1
        }
        let keys = try retention.map { try writer.forgetKeys(by: $0, limit: limit) } ?? 0
        try writer.forgetReleasedContent()
        let isDone = entriesDone == entries.count && max(entries.count, keys, released) < limit
        return Swept(expired: swept, isDone: isDone)
    }

    /// Schedules the remaining outcomes of a chunk for their retention time.
    private func keep(_ entry: DueTimes.Entry, _ retention: RetentionTime?, at now: Timestamp) throws {
        let cutoff = retention.map { memory.due.cutoff(by: $0) }
        let last = cutoff?.wall ?? memory.due.lastForgotten(at: now)
        if let least = try reader.leastServed(in: entry.positions, until: last) {
            var until: Int64 = 0
            if let retention, let cutoff { until = retention.served + max(1, least - cutoff.served) }
            try memory.due.hold(entry.chunk, untilServed: until, in: db)
        }
        // The retention time of outcomes may be longer than when the entry was made.
        if let next = try reader.nextFinalRow(in: entry.positions, after: last) { try memory.due.add(next, in: db) }
    }
}
