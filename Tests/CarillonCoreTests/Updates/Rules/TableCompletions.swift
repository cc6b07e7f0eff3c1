import CarillonCore
import CarillonWire

/// A store of completions of one binding that reads the facts that ``CompletionRules`` request and writes their changes.
struct TableCompletions {
    private let rules = CompletionRules()
    var world = CompletionWorld()
    private(set) var rows: [CompletionKey: CompletionRow] = [:]
    /// A scenario sets this to false after each comparison.
    var needsResync = false

    private func facts(of key: CompletionKey) -> CompletionFacts {
        CompletionFacts(
            completion: rows[key]?.completion, update: world.updates[key.update],
            revision: world.isBindingEnded ? nil : world.revision)
    }

    // MARK: Operations

    mutating func offer(_ offer: UpdateOffer) -> Bool {
        guard let changes = rules.offer(offer, knowing: facts(of: offer.key)) else { return false }
        write(changes)
        return true
    }

    mutating func evaluate(_ completion: Completion, at now: Timestamp) {
        let isBlocked = rows.values.contains {
            completion.orderKey != nil && $0.completion.orderKey == completion.orderKey
                && $0.completion.machine.blocksOthers
        }
        let facts = NewCompletionFacts(
            update: world.updates[completion.key.update], isKnown: rows[completion.key] != nil, isBlocked: isBlocked)
        if let changes = rules.evaluated(completion, at: now, knowing: facts) { write(changes) }
    }

    /// - Parameter decide: Returns nil if nothing is to be changed.
    mutating func change(
        _ key: CompletionKey, at now: Timestamp, _ decide: (CompletionRules, Completion) -> CompletionStep?
    ) -> Bool {
        guard let completion = rows[key]?.completion, let step = decide(rules, completion) else { return false }
        write(step, at: now)
        return true
    }

    mutating func returned(_ key: CompletionKey, at now: Timestamp) {
        if let step = rules.returned(at: now, knowing: facts(of: key)) { write(step, at: now) }
    }

    mutating func report(_ reported: ReportedResult, of key: CompletionKey, at now: Timestamp) -> Bool {
        guard let completion = rows[key]?.completion else { return false }
        let isContent = world.updates[key.update]?.isContent ?? false
        switch rules.report(reported, of: completion, isContent: isContent, at: now) {
        case .taken(let step):
            write(step, at: now)
            return true
        case .late: break
        case .lateFailure: needsResync = true
        case .lateSuccess:
            for (other, row) in rows where other.update == key.update {
                if row.completion.machine.state == .expired, row.coalescedBy == nil { rows[other]?.coalescedBy = key.update }
            }
        }
        return false
    }

    // MARK: Rows

    private mutating func write(_ step: CompletionStep, at now: Timestamp) {
        var facts = ConsequenceFacts()
        while true {
            switch rules.consequences(of: step, at: now, knowing: facts) {
            case .needs(let questions): answer(questions, about: step.before.key, into: &facts)
            case .decided(let changes): return write(changes)
            }
        }
    }

    private func answer(
        _ questions: ConsequenceQuestions, about key: CompletionKey, into facts: inout ConsequenceFacts
    ) {
        for orderKey in questions.orderKeys {
            let others = rows.values.map(\.completion).filter {
                $0.orderKey.map { key in OrderKey(key) } == orderKey && $0.machine.blocksOthers && $0.key != key
            }
            let first = others.min { ($0.key.update, $0.key.entry) < ($1.key.update, $1.key.entry) }
            facts.firsts[orderKey] = first.map { [$0] } ?? []
        }
        if questions.coalesced { facts.coalesced = coalesced(by: key.update) }
        if questions.content {
            facts.content = ConsequenceFacts.Content(
                isContent: world.updates[key.update]?.isContent ?? false, isBindingEnded: world.isBindingEnded)
        }
    }

    private func coalesced(by update: UpdateSerial) -> [ConsequenceFacts.Coalesced] {
        guard !world.resyncs.contains(update) else { return [] }
        let found = rows.values.filter { $0.coalescedBy == update && $0.completion.machine.state == .superseded }
            .map(\.completion).sorted { ($0.key.update, $0.key.entry) < ($1.key.update, $1.key.entry) }
        return found.compactMap { completion -> ConsequenceFacts.Coalesced? in
            switch world.updates[completion.key.update]?.status {
            case .live: return ConsequenceFacts.Coalesced(completion: completion, isExpired: false)
            case .expired: return ConsequenceFacts.Coalesced(completion: completion, isExpired: true)
            case .superseded, .withdrawn, nil: return nil
            }
        }
    }

    private mutating func write(_ changes: CompletionChanges) {
        if let coalesced = changes.coalesced {
            for (key, row) in rows where row.coalescedBy == coalesced.key.update {
                rows[key]?.coalescedBy = coalesced.coalescer
            }
            rows[coalesced.key]?.coalescedBy = coalesced.coalescer
        }
        if let removed = changes.removed { rows[removed] = nil }
        if var inserted = changes.inserted {
            let coalescer = inserted.coalescedBy
            inserted.coalescedBy = nil
            rows[inserted.key] = CompletionRow(completion: inserted, coalescedBy: coalescer)
            if let entry = changes.forgottenEntry {
                rows = rows.filter { key, row in
                    key.update != inserted.key.update || key.entry > entry || !row.completion.machine.state.isFinal
                }
            }
        }
        for (key, completion) in changes.changed {
            rows[key]?.completion = completion
            if changes.revived.contains(key) { rows[key]?.coalescedBy = nil }
        }
        if changes.needsResync != nil { needsResync = true }
    }
}
