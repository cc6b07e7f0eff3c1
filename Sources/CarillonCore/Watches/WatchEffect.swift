/// Changes of watches that are written in the transaction that appends their news.
package enum WatchEffect: FeatureEffect {
    case pinged(PingRecord)
    case vouchedFor(ChannelSerial)

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .pinged(let record):
            hasher.combine(record.end.lease.work)
            hasher.combine(record.end.lease.fence)
        case .vouchedFor(let channel): hasher.combine(channel)
        }
    }
}

extension Effect {
    /// What a ping found is written to its watch.
    package static func pinged(_ record: PingRecord) -> Effect { Effect(WatchEffect.pinged(record)) }

    /// The back end spoke for itself: the channel believes again that it answers.
    package static func vouchedFor(_ channel: ChannelSerial) -> Effect { Effect(WatchEffect.vouchedFor(channel)) }
}
