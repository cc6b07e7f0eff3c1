import Metrics

/// Counts the changes of inboxes. A store that committed changes passes their tally.
package struct InboxMetrics: Sendable {
    private let accepted: [EnvelopeKind: Counter]
    private let ended: [InboxTally.End: Counter]
    private let delay = ServerMetric.acknowledgementDelay.timer()

    package init() {
        accepted = Dictionary(
            uniqueKeysWithValues: EnvelopeKind.allCases.map { ($0, ServerMetric.envelopesAccepted.counter($0.label)) })
        let ends = EnvelopeKind.allCases.flatMap { kind in
            Outcome.allCases.map { InboxTally.End(kind: kind, outcome: $0) }
        }
        ended = Dictionary(
            uniqueKeysWithValues: ends.map { end in
                (end, ServerMetric.envelopesEnded.counter(end.kind.label, end.outcome.rawValue))
            })
    }

    package func count(_ tally: InboxTally) {
        for (kind, count) in tally.accepted { accepted[kind]?.increment(by: count) }
        for (end, count) in tally.ended { ended[end]?.increment(by: count) }
        for milliseconds in tally.acknowledgementDelays { delay.recordMilliseconds(milliseconds) }
    }
}

extension EnvelopeKind {
    fileprivate var label: String {
        switch self {
        case .message: "message"
        case .channelClosed: "channel_closed"
        case .channelError: "channel_error"
        case .pingFailed: "ping_failed"
        case .recovered: "recovered"
        case .deviceStatus: "device_status"
        case .fired: "fired"
        case .update: "update"
        case .retraction: "retraction"
        case .serviceRequest: "service_request"
        case .serviceReply: "service_reply"
        case .serviceNotice: "service_notice"
        }
    }
}
