import CarillonCore
import CarillonWire
import Synchronization

/// A session that notes what its home calls.
final class NotingSession: LiveSession {
    enum Event: Equatable, Sendable {
        case offered(Int64)
        case offeredVolatile(Int64)
        case storedMore
        case withdrew(DeliveryMachine.Withdrawal)
        case settled(Int)
        case providersChanged
        case moving, stays, gone, arrives
        case ended(SessionEnd)
    }

    private struct State {
        var events: [Event] = []
        var answers: [@Sendable (Bool) -> Void] = []
    }

    private let state = Mutex(State())
    private let answersOffers: Bool

    /// - Parameter answersOffers: Whether it takes each envelope of TTL 0 at once. Otherwise it answers with ``answerOffers()``.
    init(answersOffers: Bool = true) { self.answersOffers = answersOffers }

    var events: [Event] { state.withLock { $0.events } }

    private func note(_ event: Event) { state.withLock { $0.events.append(event) } }

    func answerOffers() {
        let answers = state.withLock { state in
            defer { state.answers = [] }
            return state.answers
        }
        for answer in answers { answer(true) }
    }

    func offer(_ envelope: Envelope) { note(.offered(envelope.position)) }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        note(.offeredVolatile(envelope.position))
        if answersOffers { answer(true) } else { state.withLock { $0.answers.append(answer) } }
    }

    func storedMore() { note(.storedMore) }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        note(.withdrew(withdrawal))
        done()
    }

    func settled(_ ids: [MessageID]) { note(.settled(ids.count)) }

    func providersChanged() { note(.providersChanged) }

    func moving(done: @escaping @Sendable () -> Void) {
        note(.moving)
        done()
    }

    func moved(_ end: MoveEnd) {
        switch end {
        case .stays: note(.stays)
        case .gone: note(.gone)
        case .arrives: note(.arrives)
        }
    }

    func end(because reason: SessionEnd) { note(.ended(reason)) }
}
