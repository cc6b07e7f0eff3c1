import CarillonCore
import CarillonWire
import Synchronization

/// A session that stores its calls, and delivers every offer.
final class RecordingSession: LiveSession {
    enum Event: Equatable, Sendable {
        case offered(Int64)
        case offeredVolatile(Int64)
        case storedMore
        case withdrew(DeliveryMachine.Withdrawal)
        case finished(Int)
        case ended(SessionEnd)
    }

    private let state = Mutex<[Event]>([])
    private let takesVolatile: Bool

    init(takesVolatile: Bool = true) { self.takesVolatile = takesVolatile }

    var events: [Event] { state.withLock { $0 } }

    private func note(_ event: Event) { state.withLock { $0.append(event) } }

    func offer(_ envelope: Envelope) { note(.offered(envelope.position)) }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        note(.offeredVolatile(envelope.position))
        answer(takesVolatile)
    }

    func storedMore() { note(.storedMore) }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        note(.withdrew(withdrawal))
        done()
    }

    func finished(_ ids: [MessageID]) { note(.finished(ids.count)) }

    func end(because reason: SessionEnd) { note(.ended(reason)) }
}
