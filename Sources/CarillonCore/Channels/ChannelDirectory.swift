import Synchronization

/// Caches open channels, so that a message to a busy channel needs no read from the store.
///
/// The store has the valid state. A change removes the entry before the change is answered. A record that was read before a
/// change and arrives after it is not cached.
package final class ChannelDirectory: Sendable {
    private struct State {
        var channels: LRUCache<ChannelSerial, PushChannel>
        var changes = 0
    }

    private let store: any ChannelStore
    private let state: Mutex<State>

    package init(store: any ChannelStore, capacity: Int = 131_072) {
        self.store = store
        state = Mutex(State(channels: LRUCache(capacity: capacity)))
    }

    /// Returns the open channel with this serial number if it is cached.
    package func remembered(_ serial: ChannelSerial) -> PushChannel? {
        state.withLock { $0.channels[serial] }
    }

    /// Returns the open channel with this serial number; nil if it is closed.
    package func channel(_ serial: ChannelSerial) async throws -> PushChannel? {
        if let channel = remembered(serial) { return channel }
        let changes = changes
        guard let channel = try await store.channel(serial) else { return nil }
        remember(channel, asOf: changes)
        return channel
    }

    /// Caches a channel that is being opened, because messages are often sent to a new channel soon.
    package func opening(_ open: () async throws -> OpenChannelResult) async throws -> OpenChannelResult {
        let changes = changes
        let result = try await open()
        switch result {
        case .opened(let channel), .alreadyOpen(let channel): remember(channel, asOf: changes)
        case .tooMany, .deviceGone, .ofFormerUser: break
        }
        return result
    }

    private var changes: Int { state.withLock { $0.changes } }

    /// Caches a channel, unless a change came after the number of changes was read.
    private func remember(_ channel: PushChannel, asOf changes: Int) {
        state.withLock { state in
            if state.changes == changes { state.channels[channel.serial] = channel }
        }
    }

    package func forgetAll() {
        state.withLock { state in
            state.changes += 1
            state.channels.removeAll()
        }
    }

    /// Removes the channels of the devices in a shard.
    package func forget(_ shard: Shard) {
        state.withLock { state in
            state.changes += 1
            state.channels.removeValues { Shard(of: $0.device) == shard }
        }
    }

    package func forget(_ serials: [ChannelSerial]) {
        guard !serials.isEmpty else { return }
        state.withLock { state in
            state.changes += 1
            for serial in serials { state.channels[serial] = nil }
        }
    }
}
