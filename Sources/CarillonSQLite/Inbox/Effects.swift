import CarillonCore
import GRDB

/// The effects of a batch of appends, inside a transaction. The feature of each effect decides about it and writes it.
final class Effects {
    private let db: Database
    private let completions: CompletionEffects
    private let firings: FiringTransaction
    private let requests: RequestSteps
    private let watches: WatchEffects

    init(_ db: Database, memory: InboxMemory) {
        self.db = db
        completions = CompletionEffects(db)
        firings = FiringTransaction(db)
        requests = RequestSteps(db, memory: memory.requests)
        watches = WatchEffects(db)
    }

    /// Returns the effects that still count.
    func counting(_ effects: Set<Effect>) throws -> Set<Effect> {
        guard !effects.isEmpty else { return [] }
        try firings.read(effects.compactMap { $0.value as? FiringEffect })
        try requests.readFacts(of: effects.compactMap { $0.value as? RequestStep })
        return try effects.filter { try counts($0) }
    }

    private func counts(_ effect: Effect) throws -> Bool {
        switch effect.value {
        case let effect as CompletionEffect: return try completions.counts(effect)
        case let effect as FiringEffect: return firings.counts(effect)
        case let step as RequestStep: return requests.counts(step)
        case let effect as StatusEffect: return try PendingStatusTable(db).isPending(effect.device, effect.at)
        case let effect as WatchEffect: return try watches.counts(effect)
        default: throw Self.unknown
        }
    }

    /// Whether the row of an origin was read with the effects. Such an origin is open: only channels are closed before their rows
    /// are removed.
    func haveRead(_ origin: OriginKey) -> Bool {
        origin.kind == .subscription && firings.hasRead(SubscriptionSerial(origin.serial))
    }

    /// Writes the consequences of an effect that did not count.
    func giveUp(_ effect: Effect) throws {
        if let effect = effect.value as? WatchEffect { try watches.giveUp(effect) }
    }

    /// Writes effects that count.
    func write(_ effects: [Effect]) throws {
        for effect in effects where try !apply(effect) { throw Self.conflict }
        guard try firings.apply(effects.compactMap { $0.value as? FiringEffect }), try requests.write() else {
            throw Self.conflict
        }
    }

    private static let conflict = StoreFault(.unavailable, "two changes of one row are in one commit")
    private static let unknown = StoreFault(.unavailable, "the store does not know the kind of an effect")

    /// Returns whether the effect counted.
    private func apply(_ effect: Effect) throws -> Bool {
        switch effect.value {
        case let effect as CompletionEffect: return try completions.apply(effect)
        // The firing effects are written together.
        case is FiringEffect: return true
        case let step as RequestStep:
            // The step is written with the other steps of the batch.
            requests.accept(step)
            return true
        case let effect as StatusEffect: return try PendingStatusTable(db).notified(effect.device, effect.at)
        case let effect as WatchEffect: return try watches.apply(effect)
        default: throw Self.unknown
        }
    }
}
