/// The stream of one observer of a channel: the present state of the channel first, then each change.
struct ChannelChanges: Sendable {
    let identifier: String
    let number: UInt64
    let stream: AsyncStream<ChannelMachine>
}
