import Synchronization

/// The results that a delegate is called with now. They must not be removed to make room.
///
/// Delegates are called one after the other, beside the engine.
final class HeardResults: Sendable {
    private struct State {
        var heard: Set<String> = []
        var removed: Set<String> = []
    }

    private let state = Mutex(State())

    /// The results that a delegate was called with, until they are confirmed.
    var ids: Set<String> { state.withLock { $0.heard } }

    /// A delegate is about to be called with a result. Returns false for a result that was removed: the delegate hears of the removal alone.
    func begins(_ id: String) -> Bool {
        state.withLock { state in
            guard !state.removed.contains(id) else { return false }
            state.heard.insert(id)
            return true
        }
    }

    /// The result was removed while it waited for a delegate.
    func removed(_ id: String) { state.withLock { _ = $0.removed.insert(id) } }

    /// The app confirmed the result.
    func confirmed(_ id: String) { state.withLock { _ = $0.heard.remove(id) } }

    /// Nothing waits for a delegate with the result any more.
    func finished(_ id: String) { state.withLock { _ = $0.removed.remove(id) } }
}
