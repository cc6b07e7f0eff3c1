/// What changes of the inboxes come to, for those who count.
package struct InboxTally: Equatable, Sendable {
    package struct End: Hashable, Sendable {
        package var kind: EnvelopeKind
        package var outcome: Outcome
    }

    package private(set) var accepted: [EnvelopeKind: Int] = [:]
    package private(set) var ended: [End: Int] = [:]
    /// How long each that was acknowledged had been accepted, in milliseconds.
    package private(set) var acknowledgementDelays: [Int64] = []
    /// By how much more waits than before.
    package var waiting = InboxUsage.Waiting()

    package init() {}

    mutating func accepted(_ kind: EnvelopeKind) { accepted[kind, default: 0] += 1 }

    mutating func ended(_ row: InboxRow, _ settlement: Settlement) {
        ended(row.kind, settlement.outcome)
        guard settlement.outcome == .acknowledged else { return }
        acknowledgementDelays.append(max(0, settlement.at.milliseconds - row.acceptedAt.milliseconds))
    }

    package mutating func ended(_ kind: EnvelopeKind, _ outcome: Outcome, count: Int = 1) {
        ended[End(kind: kind, outcome: outcome), default: 0] += count
    }

    package mutating func add(_ other: InboxTally) {
        accepted.merge(other.accepted, uniquingKeysWith: +)
        ended.merge(other.ended, uniquingKeysWith: +)
        acknowledgementDelays += other.acknowledgementDelays
        waiting.envelopes += other.waiting.envelopes
        waiting.bytes += other.waiting.bytes
    }
}
