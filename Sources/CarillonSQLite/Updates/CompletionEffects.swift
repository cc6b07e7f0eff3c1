import CarillonCore
import GRDB

/// What the effects of a batch of appends do to completions. The facts of an offer are read once, when it is judged.
final class CompletionEffects {
    private let rules = CompletionRules()
    private let transaction: CompletionTransaction
    private let reader: CompletionReader
    private let writer: CompletionChangeWriter
    private var facts: [CompletionKey: CompletionFacts] = [:]

    init(_ db: Database) {
        transaction = CompletionTransaction(db)
        reader = CompletionReader(db)
        writer = CompletionChangeWriter(db)
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
        let known = try reader.facts(of: offer.key)
        facts[offer.key] = known
        return rules.offer(offer, knowing: known) != nil
    }

    /// Returns whether the offer counted. It changes no other completion, except final ones that are forgotten.
    private func apply(_ offer: UpdateOffer) throws -> Bool {
        let known = try facts.removeValue(forKey: offer.key) ?? reader.facts(of: offer.key)
        guard let changes = rules.offer(offer, knowing: known) else { return false }
        try writer.write(changes)
        if changes.forgottenEntry != nil { facts = [:] }
        return true
    }

    /// Returns whether the completion had not ended before.
    private func end(_ key: CompletionKey, as state: CompletionMachine.State, at now: Timestamp) throws -> Bool {
        facts = [:]
        return try transaction.end(key, as: state, at: now)
    }
}
