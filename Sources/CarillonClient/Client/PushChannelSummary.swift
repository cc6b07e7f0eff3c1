/// What the storage knows of one channel; see ``PushClient/channels``.
public struct PushChannelSummary: Hashable, Sendable {
    /// The app's name for the channel.
    public let identifier: String
    /// Where the channel stands.
    public let state: PushChannelState
    /// How many messages wait in the storage until the app has handled them.
    public let waitingMessages: Int
    /// How many bytes their bodies have.
    public let waitingBytes: Int
    /// Whether the events of the channel are being iterated at this moment.
    public let isBeingRead: Bool
}
