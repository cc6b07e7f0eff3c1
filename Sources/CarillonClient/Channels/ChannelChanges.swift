/// One watcher's stream of what a channel is.
struct ChannelChanges: Sendable {
    let identifier: String
    let number: UInt64
    let stream: AsyncStream<ChannelMachine>
}
