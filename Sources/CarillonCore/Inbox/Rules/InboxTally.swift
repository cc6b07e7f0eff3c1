/// The counts of changes of the inboxes, for metrics.
package struct InboxTally: Equatable, Sendable {
    package struct End: Hashable, Sendable {
        package var kind: EnvelopeKind
        package var outcome: Outcome
    }

    package private(set) var accepted: [EnvelopeKind: Int] = [:]
    package private(set) var ended: [End: Int] = [:]
    /// The time from acceptance to acknowledgement of each acknowledged envelope, in milliseconds.
    package private(set) var acknowledgementDelays: [Int64] = []
    /// The change of the number and size of waiting envelopes.
    package var waiting = InboxUsage.Waiting()

    package init() {}

    mutating func accepted(_ kind: EnvelopeKind) { accepted[kind, default: 0] += 1 }

    mutating func ended(_ row: InboxRow, _ finalOutcome: FinalOutcome) {
        ended(row.kind, finalOutcome.outcome)
        guard finalOutcome.outcome == .acknowledged else { return }
        acknowledgementDelays.append(max(0, finalOutcome.at.milliseconds - row.acceptedAt.milliseconds))
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
