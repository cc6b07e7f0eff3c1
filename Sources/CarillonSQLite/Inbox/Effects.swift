import CarillonCore
import GRDB

/// The effects of a batch of appends, inside a transaction: each is judged and written by the feature that it belongs to.
final class Effects {
    private let db: Database
    private let completions: CompletionEffects
    private let firings: FiringTransaction
    private let requests: RequestSteps
    private let watches: WatchEffects

    init(_ db: Database) {
        self.db = db
        completions = CompletionEffects(db)
        firings = FiringTransaction(db)
        requests = RequestSteps(db)
        watches = WatchEffects(db)
    }

    /// Returns the effects that still count.
    func counting(_ effects: [Effect]) throws -> [Effect] {
        try firings.read(effects.compactMap(\.firing))
        try requests.readFacts(of: effects.compactMap(\.requestStep))
        return try effects.filter { try counts($0) }
    }

    private func counts(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged(let record): try watches.counts(record)
        case .vouchedFor(let channel): try watches.counts(vouchingFor: channel)
        case .statusTold(let device, let at): try StatusNewsTable(db).isUntold(device, at)
        case .fired, .heldTold: effect.firing.map { firings.counts($0) } ?? false
        case .updateOffered(let offer): try completions.counts(offer)
        case .updateRetracted(let key, _, _): try completions.canEnd(key)
        case .request(let step): requests.counts(step)
        }
    }

    /// It did not count.
    func giveUp(_ effect: Effect) throws {
        if case .pinged(let record) = effect { try watches.giveUp(record) }
    }

    /// Writes effects that count.
    func write(_ effects: [Effect]) throws {
        for effect in effects where try !apply(effect) { throw Self.conflict }
        guard try firings.apply(effects.compactMap(\.firing)), try requests.write() else { throw Self.conflict }
    }

    private static let conflict = StoreFault(.unavailable, "two changes of one thing came at once")

    /// Returns whether the effect counted.
    private func apply(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged(let record): return try watches.apply(record)
        case .vouchedFor(let channel): return try watches.vouch(for: channel)
        case .statusTold(let device, let at): return try StatusNewsTable(db).told(device, at)
        // Written together.
        case .fired, .heldTold: return true
        case .updateOffered(let offer): return try completions.apply(offer)
        case .updateRetracted(let key, let state, let at): return try completions.end(key, as: state, at: at)
        case .request(let step):
            // Written with the other steps of the batch.
            requests.accept(step)
            return true
        }
    }
}

extension Effect {
    fileprivate var requestStep: RequestStep? {
        if case .request(let step) = self { step } else { nil }
    }
}
