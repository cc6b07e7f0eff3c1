import CarillonCore
import GRDB

/// The effects of a batch of appends on watches. The facts of an effect are read once, when it is decided whether the effect
/// counts.
final class WatchEffects {
    private let rules = WatchRules()
    private let reader: WatchReader
    private let writer: WatchChangeWriter
    private var facts = WatchFacts()

    init(_ db: Database) {
        reader = WatchReader(db)
        writer = WatchChangeWriter(db)
    }

    // MARK: Decisions

    func counts(_ effect: WatchEffect) throws -> Bool {
        switch effect {
        case .pinged(let record):
            try reader.read(record, into: &facts)
            return rules.record(record, knowing: facts).counts
        case .vouchedFor(let channel):
            try reader.read(channel, into: &facts)
            return rules.vouch(for: channel, knowing: facts).counts
        }
    }

    // MARK: Changes

    /// Returns whether the effect counted.
    func apply(_ effect: WatchEffect) throws -> Bool {
        switch effect {
        case .pinged(let record): try write(rules.record(record, knowing: facts))
        case .vouchedFor(let channel): try write(rules.vouch(for: channel, knowing: facts))
        }
    }

    /// Ends the lease of an effect that did not count.
    func giveUp(_ effect: WatchEffect) throws {
        if case .pinged(let record) = effect { try write(rules.giveUp(record, knowing: facts)) }
    }

    private func write(_ ruling: WatchRules.Ruling) throws -> Bool {
        if ruling.counts { try write(ruling.changes) }
        return ruling.counts
    }

    private func write(_ changes: WatchChanges) throws {
        try writer.write(changes)
        facts.apply(changes)
    }
}
