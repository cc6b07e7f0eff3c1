import Synchronization

/// The results that delegates are handling now. They must not be removed to make room.
///
/// Delegates are called one after the other, concurrently with the engine.
final class DelegateResults: Sendable {
    private struct State {
        var delivered: Set<String> = []
        var removed: Set<String> = []
    }

    private let state = Mutex(State())

    /// The results with which a delegate was called, until they are confirmed.
    var ids: Set<String> { state.withLock { $0.delivered } }

    /// Records that a delegate is about to be called with a result. Returns false if the result was removed: only the removal is
    /// reported to the delegate then.
    func begins(_ id: String) -> Bool {
        state.withLock { state in
            guard !state.removed.contains(id) else { return false }
            state.delivered.insert(id)
            return true
        }
    }

    /// Records that the result was removed while it waited for a delegate.
    func removed(_ id: String) { state.withLock { _ = $0.removed.insert(id) } }

    /// Records that the app confirmed the result.
    func confirmed(_ id: String) { state.withLock { _ = $0.delivered.remove(id) } }

    /// Records that no call of a delegate waits with the result any more.
    func finished(_ id: String) { state.withLock { _ = $0.removed.remove(id) } }
}
