import CarillonSQLite
import Dispatch
import Synchronization
import TestSupport

/// Stops a store after its next commit, until the test lets it go on.
final class CommitGate: Sendable {
    private let store: SQLiteStore
    private let isReached = Mutex(false)
    private let mayGoOn = DispatchSemaphore(value: 0)

    init(_ store: SQLiteStore) {
        self.store = store
        store.onCommit { [self] in
            isReached.withLock { $0 = true }
            mayGoOn.wait()
        }
    }

    /// Returns when a commit is stopped.
    func reached() async throws { try await eventually { self.isReached.withLock { $0 } } }

    func open() {
        store.onCommit(nil)
        mayGoOn.signal()
    }
}
