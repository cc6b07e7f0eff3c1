import CarillonCore
import CarillonWire
import GRDB

/// Changes completions inside one transaction, as ``CompletionRules`` decides. The facts of a completion are read after the
/// change before it was written.
///
/// ``endAll(of:at:)``, ``release(_:limit:at:)``, ``offerAgain(to:at:)`` and ``takeOut(of:after:limit:at:)`` read all their rows
/// first. This is correct because a consequence only does one of two things. It sets the due time of an unfinished row, which an
/// end clears, or it revives a final row, which is delivered when the binding begins again. The last two functions have no
/// consequences.
struct CompletionTransaction {
    private let db: Database
    private let rules = CompletionRules()
    private let table: CompletionTable
    private let reader: CompletionReader
    private let writer: CompletionChangeWriter

    init(_ db: Database) {
        self.db = db
        table = CompletionTable(db)
        reader = CompletionReader(db)
        writer = CompletionChangeWriter(db)
    }

    /// Writes a step with its consequences. Returns the envelope that must be removed from the inbox in the same transaction.
    ///
    /// - Parameter content: Nil if the content was not read.
    @discardableResult
    private func write(
        _ step: CompletionStep, content: ConsequenceFacts.Content? = nil, at now: Timestamp
    ) throws -> MessageID? {
        let envelope = step.takesOut ? try table.envelope(of: step.before.key) : nil
        try writeOnly(step, content: content, at: now)
        return envelope
    }

    private func writeOnly(
        _ step: CompletionStep, content: ConsequenceFacts.Content? = nil, at now: Timestamp
    ) throws {
        var facts = ConsequenceFacts(content: content)
        while true {
            switch rules.consequences(of: step, at: now, knowing: facts) {
            case .needs(let questions): try reader.answer(questions, about: step, into: &facts)
            case .decided(let changes): return try writer.write(changes)
            }
        }
    }

    // MARK: New completions

    /// Adds completions without an envelope, unless they exist.
    func add(_ completions: [Completion], at now: Timestamp) throws {
        for completion in completions {
            let facts = try reader.facts(ofNew: completion)
            if let changes = rules.evaluated(completion, at: now, knowing: facts) { try writer.write(changes) }
        }
    }

    /// Requests a device to fetch everything. Returns the envelopes of the content that this replaces. They must be removed from
    /// the inbox in the same transaction.
    func resync(_ update: UpdateSerial, of binding: BindingSerial, at now: Timestamp) throws -> [MessageID] {
        let last = try table.last(of: binding, update)
        if let changes = rules.resync(update, of: binding, at: now, knowing: last) { try writer.write(changes) }
        try table.markCoalesced(update, forExpiredOf: binding)
        let content = try table.unreceivedContent(of: binding).completions
        return try coalesce(content.map { ($0.key, by: update) }, at: now)
    }

    /// Returns the envelopes that must be removed from the inbox in the same transaction.
    func coalesce(_ coalesced: [(CompletionKey, by: UpdateSerial)], at now: Timestamp) throws -> [MessageID] {
        try coalesced.compactMap { key, coalescer in
            guard let completion = try table.completion(key),
                let step = rules.coalesce(completion, by: coalescer, at: now)
            else { return nil }
            return try write(step, at: now)
        }
    }

    // MARK: Ends

    func canEnd(_ key: CompletionKey) throws -> Bool { rules.canEnd(knowing: try reader.facts(of: key)) }

    /// Returns whether this call ended the completion.
    @discardableResult
    func end(_ key: CompletionKey, as state: CompletionMachine.State, at now: Timestamp) throws -> Bool {
        var facts = CompletionFacts()
        if state == .expired { facts = try reader.facts(of: key) } else { facts.completion = try table.completion(key) }
        guard let completion = facts.completion, let step = rules.end(completion, as: state, at: now) else { return false }
        try writeOnly(step, content: state == .expired ? ConsequenceFacts.Content(facts) : nil, at: now)
        return true
    }

    /// Ends all completions of a binding that are not final.
    func endAll(of binding: BindingSerial, at now: Timestamp) throws {
        for completion in try table.unfinished(of: binding) {
            if let step = rules.end(completion, as: .gone, at: now) { try writeOnly(step, at: now) }
        }
    }

    /// Ends some completions of an ended binding. Returns nil if nothing is left, or the binding began again.
    func release(_ binding: BindingSerial, limit: Int, at now: Timestamp) throws -> [MessageID]? {
        let unfinished = try table.unfinished(of: binding, limit: limit)
        let needsCleanup = try !unfinished.isEmpty && BindingReader(db).needsCleanup(binding)
        switch rules.release(unfinished, needsCleanup: needsCleanup, at: now) {
        case .nothingLeft:
            try db.run("UPDATE binding SET is_left_over = FALSE WHERE serial = ?", [binding.rawValue])
            return nil
        case .stops: return nil
        case .ends(let steps): return try steps.compactMap { try write($0, at: now) }
        }
    }

    // MARK: Audiences

    /// Returns the envelopes that must be removed from the inbox in the same transaction.
    func leftAudience(
        _ keys: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) throws -> [MessageID] {
        guard try reader.revision(of: binding) == revision else { return [] }
        return try keys.compactMap { key in
            guard let completion = try table.completion(key), let step = rules.leftAudience(completion, at: now) else {
                return nil
            }
            return try write(step, at: now)
        }
    }

    func returned(_ keys: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp) throws {
        guard try reader.revision(of: binding) == revision else { return }
        for key in keys {
            if let step = rules.returned(at: now, knowing: try reader.facts(of: key)) { try write(step, at: now) }
        }
        try table.lineUp(binding)
    }

    /// Returns the envelopes that must be removed from the inbox in the same transaction.
    func unsupported(
        _ keys: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) throws -> [MessageID] {
        guard try reader.revision(of: binding) == revision else { return [] }
        return try unsupported(keys, at: now)
    }

    private func unsupported(_ keys: [CompletionKey], at now: Timestamp) throws -> [MessageID] {
        try keys.compactMap { key in
            guard let completion = try table.completion(key),
                let step = rules.end(completion, as: .unsupported, at: now)
            else { return nil }
            return try write(step, at: now)
        }
    }

    /// Applies a change of the kinds that a device processes: completions of unsupported kinds end, and completions that ended
    /// for that reason and are of supported kinds become due. Returns the envelopes that must be removed from the inbox.
    func followKinds(of binding: UpdateBinding, at now: Timestamp) throws -> [MessageID] {
        let unknown = try unsupported(try table.unfinished(of: binding.serial, outside: binding.kinds), at: now)
        try table.returnSupported(of: binding, at: now)
        return unknown
    }

    // MARK: Results of devices

    /// Changes the completion of an envelope that left its inbox.
    func finished(_ row: InboxRow) throws {
        guard let finalOutcome = row.finalOutcome, let topic = row.topic,
            let key = CompletionKey(UpdateSerial(row.origin.serial), topic: topic),
            let completion = try table.completion(key), let step = rules.finished(completion, finalOutcome)
        else { return }
        try write(step, at: finalOutcome.at)
    }

    func report(_ reported: ReportedResult, of binding: BindingSerial, at now: Timestamp) throws -> ReportAnswer {
        guard let update = try reader.update(reported),
            let completion = try table.completion(
                CompletionKey(update: update.serial, binding: binding, entry: reported.entry))
        else { return .unknown }
        switch rules.report(reported, of: completion, isContent: update.isContent, at: now) {
        case .taken(let step): return .taken(try write(step, at: now))
        case .late: break
        case .lateFailure: try BindingTable(db).missed(binding)
        case .lateSuccess: try table.markCoalesced(update.serial, forExpiredOf: binding, update.serial)
        }
        return .late
    }

    /// Makes all unfinished completions of a device due again.
    func offerAgain(to binding: BindingSerial, at now: Timestamp) throws {
        for completion in try table.unfinished(of: binding) {
            if let step = rules.lost(completion, at: now) { try write(step, at: now) }
        }
    }

    func putOff(_ key: CompletionKey, revision: Int64, until moment: Timestamp) throws {
        if rules.canPutOff(revision: revision, knowing: try reader.facts(of: key)) {
            try writer.putOff(key, until: moment)
        }
    }

    /// Returns the number of completions that were parked and are due again.
    func requeue(_ keys: [CompletionKey], at now: Timestamp) throws -> Int {
        var count = 0
        for key in keys {
            guard let completion = try table.completion(key), let step = rules.requeue(completion, at: now) else { continue }
            try write(step, at: now)
            count += 1
        }
        return count
    }

    /// Removes the envelopes of some completions of an update from inboxes, and makes the completions due again.
    ///
    /// - Returns: The envelopes that must be removed in the same transaction, and the position for the next call; nil at the end.
    func takeOut(
        of update: UpdateSerial, after place: CompletionTable.Place, limit: Int, at now: Timestamp
    ) throws -> (envelopes: [MessageID], end: CompletionTable.Place?) {
        let found = try table.page(of: update, after: place, limit: limit)
        var envelopes: [MessageID] = []
        for completion in found {
            // The envelope of a reported completion can still be in the inbox.
            if let envelope = try table.envelope(of: completion.key) { envelopes.append(envelope) }
            if let step = rules.takenOut(completion, at: now) { try write(step, at: now) }
        }
        guard found.count == limit, let last = found.last else { return (envelopes, nil) }
        return (envelopes, CompletionTable.Place(after: last))
    }
}
