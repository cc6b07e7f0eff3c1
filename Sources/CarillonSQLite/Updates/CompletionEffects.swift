import CarillonCore
import GRDB

/// The effects of a batch of appends on completions. The facts of an offer are read when the batch checks whether the offer
/// counts. They are read again if they were removed, or if they lack the cursor of a binding that did not end.
final class CompletionEffects {
    private let rules = CompletionRules()
    private let transaction: CompletionTransaction
    private let reader: CompletionReader
    private let writer: CompletionChangeWriter
    private let bindings: BindingChangeWriter
    private var facts: [CompletionKey: CompletionFacts] = [:]
    /// The cursors of bindings after the offers of the batch.
    private var evaluated: [BindingSerial: CursorFacts] = [:]

    init(_ db: Database) {
        transaction = CompletionTransaction(db)
        reader = CompletionReader(db)
        writer = CompletionChangeWriter(db)
        bindings = BindingChangeWriter(db)
    }

    func counts(_ effect: CompletionEffect) throws -> Bool {
        switch effect {
        case .offered(let offer): try counts(offer)
        case .retracted(let key, _, _): try transaction.canEnd(key)
        }
    }

    /// Returns whether the effect counted.
    func apply(_ effect: CompletionEffect) throws -> Bool {
        switch effect {
        case .offered(let offer): try apply(offer)
        case .retracted(let key, let state, let at): try end(key, as: state, at: at)
        }
    }

    private func counts(_ offer: UpdateOffer) throws -> Bool {
        let known = try reader.facts(of: offer)
        facts[offer.key] = known
        return rules.offer(offer, knowing: known) != nil
    }

    /// Returns whether the offer counted. It changes no other completion, except final ones that are removed.
    private func apply(_ offer: UpdateOffer) throws -> Bool {
        var known = try facts.removeValue(forKey: offer.key) ?? reader.facts(of: offer)
        // The facts can be those of another offer of the completion, which writes no cursor. A binding that ended has no cursor.
        if offer.cursor != nil, known.evaluated == nil, known.revision != nil { known = try reader.facts(of: offer) }
        guard let changes = rules.offer(offer, knowing: known) else { return false }
        try writer.write(changes)
        if let place = offer.cursor {
            try note(place, with: offer, knowing: evaluated[offer.key.binding] ?? known.evaluated)
        }
        if changes.forgottenEntry != nil { facts = [:] }
        return true
    }

    /// Writes the cursor of a binding after an offer that counted.
    private func note(_ place: AudienceCursor, with offer: UpdateOffer, knowing facts: CursorFacts?) throws {
        let binding = offer.key.binding
        guard let change = BindingRules().evaluated(to: place, isFull: false, of: offer.revision, knowing: facts) else {
            return
        }
        try bindings.write(change, of: binding)
        evaluated[binding] = facts
        evaluated[binding]?.cursor = change.cursor
        evaluated[binding]?.seenTo = change.seenTo
    }

    /// Returns whether the completion ended by this call, and not earlier.
    private func end(_ key: CompletionKey, as state: CompletionMachine.State, at now: Timestamp) throws -> Bool {
        facts = [:]
        return try transaction.end(key, as: state, at: now)
    }
}

extension CompletionReader {
    fileprivate func facts(of offer: UpdateOffer) throws -> CompletionFacts {
        try facts(of: offer.key, needsCursor: offer.cursor != nil)
    }
}
