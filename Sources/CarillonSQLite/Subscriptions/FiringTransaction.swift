import CarillonCore
import GRDB

/// Applies the effects of firings inside one transaction of inboxes, as ``FiringRules`` decides. Their facts are read once.
final class FiringTransaction {
    private let db: Database
    private var facts = FiringFacts()

    init(_ db: Database) { self.db = db }

    func read(_ effects: [FiringEffect]) throws {
        guard !effects.isEmpty else { return }
        try FiringReader(db).answer(FiringRules.questions(for: effects), into: &facts)
    }

    /// Whether an effect still counts, apart from other effects of the transaction.
    func counts(_ effect: FiringEffect) -> Bool { FiringRules(knowing: facts).counts(effect) }

    /// Whether the row of a subscription was read with the effects.
    func hasRead(_ subscription: SubscriptionSerial) -> Bool { facts.subscriptions[subscription] != nil }

    /// Applies effects in their order. Returns false, and writes nothing, if one of them does not count after the effects before
    /// it.
    func apply(_ effects: [FiringEffect]) throws -> Bool {
        guard !effects.isEmpty else { return true }
        var rules = FiringRules(knowing: facts)
        for effect in effects {
            guard rules.apply(effect) else { return false }
        }
        try FiringChangeWriter(db).write(rules.changes)
        facts = FiringFacts()
        return true
    }
}
