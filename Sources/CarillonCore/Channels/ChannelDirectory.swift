import Synchronization

/// Remembers open channels, so that a send to a busy channel needs no look into the store.
///
/// It holds at most twice its capacity: when the newer half is full, the older is dropped. The store stays the
/// truth: a change forgets the entry before it is answered, and a record that was read before the change and arrives
/// after it is not kept.
package final class ChannelDirectory: Sendable {
    private struct State {
        var newer: [ChannelSerial: PushChannel] = [:]
        var older: [ChannelSerial: PushChannel] = [:]
        var changes = 0
    }

    private let store: any ChannelStore
    private let capacity: Int
    private let state = Mutex(State())

    package init(store: any ChannelStore, capacity: Int = 16_384) {
        self.store = store
        self.capacity = capacity
    }

    /// The open channel of this serial, when it is remembered.
    package func remembered(_ serial: ChannelSerial) -> PushChannel? {
        state.withLock { state in
            if let channel = state.newer[serial] { return channel }
            guard let channel = state.older[serial] else { return nil }
            keep(channel, in: &state)
            return channel
        }
    }

    /// The open channel of this serial, or nil when it is closed.
    package func channel(_ serial: ChannelSerial) async throws -> PushChannel? {
        if let channel = remembered(serial) { return channel }
        let changes = state.withLock { $0.changes }
        guard let channel = try await store.channel(serial) else { return nil }
        state.withLock { state in
            if state.changes == changes { keep(channel, in: &state) }
        }
        return channel
    }

    package func forget(_ serials: [ChannelSerial]) {
        state.withLock { state in
            state.changes += 1
            for serial in serials {
                state.newer[serial] = nil
                state.older[serial] = nil
            }
        }
    }

    private func keep(_ channel: PushChannel, in state: inout State) {
        if state.newer.count >= capacity {
            state.older = state.newer
            state.newer = [:]
        }
        state.newer[channel.serial] = channel
    }
}
