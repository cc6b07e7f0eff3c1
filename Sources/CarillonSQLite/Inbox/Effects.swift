import CarillonCore
import GRDB

/// What is written with an append: whose it is to look at and to do, inside a transaction.
struct Effects {
    private let db: Database
    private let firings: FiringTransaction

    init(_ db: Database) {
        self.db = db
        firings = FiringTransaction(db)
    }

    /// The effects that count still.
    func counting(_ effects: [Effect]) throws -> [Effect] {
        try firings.read(effects.compactMap(\.firing))
        return try effects.filter { try counts($0) }
    }

    private func counts(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged, .vouchedFor: try WatchTransaction(db).counts(effect)
        case .statusTold(let device, let at): try StatusNewsTable(db).isUntold(device, at)
        case .fired, .heldTold: effect.firing.map { firings.counts($0) } ?? false
        case .updateOffered(let offer): try CompletionTable(db).counts(offer)
        case .updateRetracted(let key, _, _): try CompletionTable(db).canEnd(key)
        case .request(let step): try RequestTable(db).counts(step)
        }
    }

    /// It did not count.
    func giveUp(_ effect: Effect) throws { try WatchTransaction(db).giveUp(effect) }

    /// Answers whether all of them counted.
    func apply(_ effects: [Effect]) throws -> Bool {
        for effect in effects {
            guard try apply(effect) else { return false }
        }
        return try firings.apply(effects.compactMap(\.firing))
    }

    private func apply(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged, .vouchedFor: try WatchTransaction(db).apply(effect)
        case .statusTold(let device, let at): try StatusNewsTable(db).told(device, at)
        // Firings are applied together.
        case .fired, .heldTold: true
        case .updateOffered(let offer): try CompletionTable(db).offer(offer)
        case .updateRetracted(let key, let state, let at): try CompletionTable(db).end(key, as: state, at: at)
        case .request(let step): try RequestTable(db).apply(step)
        }
    }
}
