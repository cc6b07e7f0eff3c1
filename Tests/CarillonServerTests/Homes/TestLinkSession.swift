import CarillonCore
import CarillonWire
import Synchronization

/// A session as a home has it behind a ``TestLink``. If its device has moved, the session arrives at the new home.
final class TestLinkSession: LiveSession {
    typealias Arrival = @Sendable () async -> ArrivedAgain

    private let session: any LiveSession
    private let isEnded = Mutex(false)
    private let leave: @Sendable () -> Arrival

    /// - Parameter leave: Called when the home moved the device to another one. Returns how the session arrives at the new home.
    init(_ session: any LiveSession, leave: @escaping @Sendable () -> Arrival) {
        self.session = session
        self.leave = leave
    }

    var executor: (any TaskExecutor)? { session.executor }

    func offer(_ envelope: Envelope) { session.offer(envelope) }
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        session.offerVolatile(envelope, answer: answer)
    }
    func storedMore() { session.storedMore() }
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        session.withdrew(withdrawal, done: done)
    }
    func finished(_ ids: [MessageID]) { session.finished(ids) }
    func providersChanged() { session.providersChanged() }
    func end(because reason: SessionEnd) {
        isEnded.withLock { $0 = true }
        session.end(because: reason)
    }
    func moving(done: @escaping @Sendable () -> Void) { session.moving(done: done) }

    func moved(_ end: MoveEnd) {
        guard case .gone = end else { return session.moved(end) }
        let arrival = leave()
        session.moved(isEnded.withLock { $0 } ? .gone : .arrives(arrival))
    }
}
