import CarillonCore
import GRDB

/// What is written with an append: whose it is to look at and to do, inside a transaction.
struct Effects {
    private let db: Database
    private let watches: WatchEffects

    init(_ db: Database) {
        self.db = db
        watches = WatchEffects(db)
    }

    /// Whether it counts still.
    func counts(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged(let record): try watches.counts(record)
        case .vouchedFor(let channel): try watches.counts(vouchingFor: channel)
        case .statusTold(let device, let at): try StatusNewsTable(db).isUntold(device, at)
        case .fired(let target, let item, let number, let at): try FiringTable(db).counts(target, item, number, at)
        case .heldTold(let number, let at): try HeldFiringTable(db).counts(number, at)
        case .updateOffered(let offer): try CompletionTable(db).counts(offer)
        case .updateRetracted(let key, _, _): try CompletionTable(db).canEnd(key)
        case .request(let step): try RequestTable(db).counts(step)
        }
    }

    /// It did not count.
    func giveUp(_ effect: Effect) throws {
        if case .pinged(let record) = effect { try watches.giveUp(record) }
    }

    /// Answers whether it counted.
    func apply(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged(let record): try watches.apply(record)
        case .vouchedFor(let channel): try watches.vouch(for: channel)
        case .statusTold(let device, let at): try StatusNewsTable(db).told(device, at)
        case .fired(let target, let item, let number, let at): try FiringTable(db).fire(target, item, number, at)
        case .heldTold(let number, let at): try HeldFiringTable(db).told(number, at)
        case .updateOffered(let offer): try CompletionTable(db).offer(offer)
        case .updateRetracted(let key, let state, let at): try CompletionTable(db).end(key, as: state, at: at)
        case .request(let step): try RequestTable(db).apply(step)
        }
    }

    /// Forgets what was read. It holds from the question whether an effect counts until the effect is applied or given up.
    func forget() { watches.forget() }
}
