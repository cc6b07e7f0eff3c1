import Synchronization

/// Caches values of a store until they are removed.
package final class ReadThroughCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Reading {
        var readers = 0
        /// Whether the value in the store was changed during the reading, so that the read value can be outdated.
        var isStale = false
    }

    private struct State {
        var known: LRUCache<Key, Value>
        /// The readings in progress, by key.
        var readings: [Key: Reading] = [:]
    }

    private let state: Mutex<State>

    package init(capacity: Int) { state = Mutex(State(known: LRUCache(capacity: capacity))) }

    package func known(_ key: Key) -> Value? { state.withLock { $0.known[key] } }

    /// Returns the keys that are cached or being read.
    package func known(among keys: some Sequence<Key>) -> Set<Key> {
        state.withLock { state in Set(keys.filter { state.known.contains($0) || state.readings[$0] != nil }) }
    }

    /// - Parameter read: Reads the value from the store if it is not cached.
    package func value(of key: Key, read: () async throws -> Value) async throws -> Value {
        let known = state.withLock { state -> Value? in
            if let known = state.known[key] { return known }
            state.readings[key, default: Reading()].readers += 1
            return nil
        }
        if let known { return known }
        do {
            let value = try await read()
            state.withLock { state in
                if end(reading: key, &state)?.isStale == false { state.known[key] = value }
            }
            return value
        } catch {
            state.withLock { _ = end(reading: key, &$0) }
            throw error
        }
    }

    private func end(reading key: Key, _ state: inout State) -> Reading? {
        let reading = state.readings[key]
        state.readings[key]?.readers -= 1
        if state.readings[key]?.readers == 0 { state.readings[key] = nil }
        return reading
    }

    /// The store's value was changed in this way. A value that is not cached is not added.
    package func change(_ key: Key, _ change: (inout Value) -> Void) {
        state.withLock { state in
            state.readings[key]?.isStale = true
            guard var value = state.known[key] else { return }
            state.known[key] = nil
            change(&value)
            state.known[key] = value
        }
    }

    package func forget(_ key: Key) {
        state.withLock { state in
            state.known[key] = nil
            state.readings[key]?.isStale = true
        }
    }

    /// Removes a value that meets a condition. A value that is being read is still cached afterwards.
    package func forget(_ key: Key, where isUnwanted: (Value) -> Bool) {
        state.withLock { state in
            guard let value = state.known[key], isUnwanted(value) else { return }
            state.known[key] = nil
        }
    }
}
