import CarillonCore
import Dispatch
import Synchronization
import TestStores
import TestSupport

/// Stops a store after each commit until the test opens the gate.
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

    /// Lets the commit continue, and stops the store after the next one.
    func pass() {
        isReached.withLock { $0 = false }
        mayGoOn.signal()
    }

    func open() {
        stores.onCommit(of: store, nil)
        mayGoOn.signal()
    }
}
