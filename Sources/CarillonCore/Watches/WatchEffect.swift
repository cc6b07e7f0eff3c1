/// Changes of watches that are written in the transaction that appends a message about them.
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
    /// Writes the result of a ping to its watch.
    package static func pinged(_ record: PingRecord) -> Effect { Effect(WatchEffect.pinged(record)) }

    /// Notes that the backend contacted the server, so that the channel counts it as responding again.
    package static func vouchedFor(_ channel: ChannelSerial) -> Effect { Effect(WatchEffect.vouchedFor(channel)) }
}
