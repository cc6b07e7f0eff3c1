/// The stored state of one channel; see ``PushClient/channels``.
public struct PushChannelSummary: Hashable, Sendable {
    /// The app's name for the channel.
    public let identifier: String
    /// The state of the channel.
    public let state: PushChannelState
    /// The number of messages that wait in the storage until the app has handled them.
    public let waitingMessages: Int
    /// The bytes of their bodies.
    public let waitingBytes: Int
    /// Whether an iteration reads the events of the channel at this moment.
    public let isBeingRead: Bool
}
