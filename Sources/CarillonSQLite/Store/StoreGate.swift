import CarillonCore
import Dispatch
import Synchronization

/// Who is at work with a store's connections. A store that closes waits for them, and lets nobody in any more: a connection that is
/// closed before it is used ends the process.
final class StoreGate: Sendable {
    private let isClosed = Mutex(false)
    private let underWay = DispatchGroup()

    /// Whoever is let in says ``leave()`` once.
    ///
    /// - Throws: ``StoreFault`` when the store is closed.
    func enter() throws {
        try isClosed.withLock { isClosed in
            guard !isClosed else { throw Self.refusal }
            underWay.enter()
        }
    }

    /// Refuses a call that uses no connection, because its answer is in memory.
    ///
    /// - Throws: ``StoreFault`` when the store is closed.
    func check() throws {
        guard !isClosed.withLock({ $0 }) else { throw Self.refusal }
    }

    private static let refusal = StoreFault(.unavailable, "the store is closed")

    func leave() { underWay.leave() }

    /// Returns when nobody is at work.
    func close() {
        isClosed.withLock { $0 = true }
        underWay.wait()
    }
}
