import CarillonCore
import Dispatch
import Synchronization

/// Counts the users of a store's connections. A store that closes waits for them, and refuses new ones: a connection that is
/// closed before its use ends the process.
final class StoreGate: Sendable {
    private let isClosed = Mutex(false)
    private let underWay = DispatchGroup()

    /// Each caller that enters must call ``leave()`` once.
    ///
    /// - Throws: ``StoreFault`` if the store is closed.
    func enter() throws {
        try isClosed.withLock { isClosed in
            guard !isClosed else { throw Self.refusal }
            underWay.enter()
        }
    }

    /// Refuses a call that uses no connection, because its result is in memory, if the store is closed.
    ///
    /// - Throws: ``StoreFault`` if the store is closed.
    func check() throws {
        guard !isClosed.withLock({ $0 }) else { throw Self.refusal }
    }

    private static let refusal = StoreFault(.unavailable, "the store is closed")

    func leave() { underWay.leave() }

    /// Returns when no caller uses a connection.
    func close() {
        isClosed.withLock { $0 = true }
        underWay.wait()
    }
}
