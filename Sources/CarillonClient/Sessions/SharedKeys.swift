import CarillonMessages
import CarillonWire

/// The keys of channels that the notification service extension has.
struct SharedKeys: Sendable {
    private var lastWritten: [ChannelID: SubscriptionKeys]?

    /// Returns the keys that must be written for the extension; nil if it has them. It needs the keys of each channel that is
    /// open or can be open again.
    mutating func change(for channels: some Sequence<ChannelMachine>) -> [ChannelID: SubscriptionKeys]? {
        var keys: [ChannelID: SubscriptionKeys] = [:]
        for channel in channels {
            guard let id = channel.channelID else { continue }
            switch channel.state {
            case .connecting, .open, .disconnecting: keys[id] = channel.keys
            case .none, .closed, .error: break
            }
        }
        defer { lastWritten = keys }
        return lastWritten == keys ? nil : keys
    }

    /// Forgets what the extension has, so that all keys are written.
    mutating func reset() { lastWritten = nil }
}
