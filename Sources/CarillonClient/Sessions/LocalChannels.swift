/// The data of all channels that this process keeps in memory.
struct LocalChannels: Sendable {
    private struct Channel: Sendable {
        let readQueue: ChannelReadQueue
        var watchers: [UInt64: AsyncStream<ChannelMachine>.Continuation] = [:]
        /// Whether a ``PushChannel`` of the channel exists.
        var isClaimed = false
        var deliverToken: PushChannel.TokenDeliverer?
        /// Whether a warning was logged that the app does not read the channel.
        var isWarned = false
    }

    /// The position of the newest message of each channel that an earlier process stored.
    private let storedBefore: [String: Int64]
    private var channels: [String: Channel] = [:]
    private var lastWatcher: UInt64 = 0

    init(storedBefore: [String: Int64] = [:]) { self.storedBefore = storedBefore }

    private mutating func change<Value>(_ identifier: String, _ body: (inout Channel) -> Value) -> Value {
        let lastStored = storedBefore[identifier] ?? 0
        return body(&channels[identifier, default: Channel(readQueue: ChannelReadQueue(lastStored: lastStored))])
    }

    var readQueues: [ChannelReadQueue] { channels.values.map(\.readQueue) }

    mutating func readQueue(of identifier: String) -> ChannelReadQueue { change(identifier) { $0.readQueue } }

    // MARK: Objects

    /// Notes that a ``PushChannel`` is made. Returns false if one exists.
    mutating func reserve(_ identifier: String) -> Bool {
        change(identifier) { channel in
            defer { channel.isClaimed = true }
            return !channel.isClaimed
        }
    }

    mutating func release(_ identifier: String) { channels[identifier]?.isClaimed = false }

    /// Returns whether to log a warning that the app does not read a channel. It is logged once for each channel.
    mutating func warns(of identifier: String) -> Bool {
        change(identifier) { channel in
            guard !channel.isWarned, !channel.readQueue.hasReader else { return false }
            channel.isWarned = true
            return true
        }
    }

    // MARK: Watchers

    /// Returns a new stream of the states of a channel, which begins with the present one.
    mutating func watch(_ identifier: String, _ present: ChannelMachine) -> ChannelChanges {
        let (stream, watcher) = AsyncStream.makeStream(of: ChannelMachine.self, bufferingPolicy: .bufferingNewest(1))
        lastWatcher += 1
        let number = lastWatcher
        change(identifier) { $0.watchers[number] = watcher }
        watcher.yield(present)
        return ChannelChanges(identifier: identifier, number: number, stream: stream)
    }

    /// Removes a watcher, and returns it if it was there.
    mutating func unwatch(_ changes: ChannelChanges) -> AsyncStream<ChannelMachine>.Continuation? {
        channels[changes.identifier]?.watchers.removeValue(forKey: changes.number)
    }

    func post(_ channel: ChannelMachine, of identifier: String) {
        for watcher in (channels[identifier]?.watchers ?? [:]).values { watcher.yield(channel) }
    }

    // MARK: Tokens

    func tokenDeliverer(of identifier: String) -> PushChannel.TokenDeliverer? { channels[identifier]?.deliverToken }

    /// Returns the former deliverer. The caller must release it without a lock, because it can own the ``PushChannel``.
    mutating func setTokenDeliverer(
        _ deliver: PushChannel.TokenDeliverer?, of identifier: String
    ) -> PushChannel.TokenDeliverer? {
        change(identifier) { channel in
            defer { channel.deliverToken = deliver }
            return channel.deliverToken
        }
    }
}
