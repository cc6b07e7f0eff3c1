import Synchronization

/// What was read of a store, known until it is forgotten.
package final class KnownValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct State {
        var known: RecentValues<Key, Value>
        /// How often something was forgotten: what was read before may be what was forgotten.
        var changes = 0
    }

    private let state: Mutex<State>

    package init(capacity: Int) { state = Mutex(State(known: RecentValues(capacity: capacity))) }

    /// - Parameter read: Reads the value from the store, where it is not known.
    package func value(of key: Key, read: () async throws -> Value) async throws -> Value {
        let (known, changes) = state.withLock { ($0.known[key], $0.changes) }
        if let known { return known }
        let value = try await read()
        state.withLock { state in
            if state.changes == changes { state.known[key] = value }
        }
        return value
    }

    /// The store's value was changed in this way; what is not known is not made known by it.
    package func change(_ key: Key, _ change: (inout Value) -> Void) {
        state.withLock { state in
            state.changes += 1
            guard var value = state.known[key] else { return }
            state.known[key] = nil
            change(&value)
            state.known[key] = value
        }
    }

    package func forget(_ key: Key) {
        state.withLock { state in
            state.known[key] = nil
            state.changes += 1
        }
    }
}
