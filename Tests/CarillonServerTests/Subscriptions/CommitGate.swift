import CarillonCore
import Dispatch
import Synchronization
import TestStores
import TestSupport

/// Stops a store after its next commit, until the test lets it go on.
final class CommitGate: Sendable {
    private let store: any Store
    private let isReached = Mutex(false)
    private let mayGoOn = DispatchSemaphore(value: 0)

    init(_ store: any Store) {
        self.store = store
        stores.onCommit(of: store) { [self] in
            isReached.withLock { $0 = true }
            mayGoOn.wait()
        }
    }

    /// Returns when a commit is stopped.
    func reached() async throws { try await eventually { self.isReached.withLock { $0 } } }

    func open() {
        stores.onCommit(of: store, nil)
        mayGoOn.signal()
    }
}
