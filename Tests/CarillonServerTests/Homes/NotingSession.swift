import CarillonCore
import CarillonWire
import Synchronization

/// A session that stores the calls of its home.
final class NotingSession: LiveSession {
    enum Event: Equatable, Sendable {
        case offered(Int64)
        case offeredVolatile(Int64)
        case storedMore
        case withdrew(DeliveryMachine.Withdrawal)
        case finished(Int)
        case providersChanged
        case moving, stays, gone, arrives
        case ended(SessionEnd)
    }

    private struct State {
        var events: [Event] = []
        var given: [Envelope] = []
        var answers: [@Sendable (Bool) -> Void] = []
        var isSlow = false
        /// The withdrawals that are not done.
        var withdrawals: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())
    private let answersOffers: Bool

    /// - Parameter answersOffers: Whether it acknowledges each envelope of TTL 0 at once. Otherwise it answers with
    ///   ``answerOffers()``.
    init(answersOffers: Bool = true) { self.answersOffers = answersOffers }

    var events: [Event] { state.withLock { $0.events } }
    /// The envelopes of TTL 0.
    var given: [Envelope] { state.withLock { $0.given } }

    private func note(_ event: Event) { state.withLock { $0.events.append(event) } }

    func answerOffers() {
        let answers = state.withLock { state in
            defer { state.answers = [] }
            return state.answers
        }
        for answer in answers { answer(true) }
    }

    /// Withdrawals are not done from now on.
    func becomeSlow() { state.withLock { $0.isSlow = true } }

    /// All withdrawals are done.
    func catchUp() {
        let withdrawals = state.withLock { state in
            defer { (state.isSlow, state.withdrawals) = (false, []) }
            return state.withdrawals
        }
        for done in withdrawals { done() }
    }

    func offer(_ envelope: Envelope) { note(.offered(envelope.position)) }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        note(.offeredVolatile(envelope.position))
        state.withLock { $0.given.append(envelope) }
        if answersOffers { answer(true) } else { state.withLock { $0.answers.append(answer) } }
    }

    func storedMore() { note(.storedMore) }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        note(.withdrew(withdrawal))
        let waits = state.withLock { state in
            if state.isSlow { state.withdrawals.append(done) }
            return state.isSlow
        }
        if !waits { done() }
    }

    func finished(_ ids: [MessageID]) { note(.finished(ids.count)) }

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

extension NotingSession {
    /// Whether something was stored for the device, or was offered.
    var hasChange: Bool {
        events.contains { event in
            if case .offered = event { true } else { event == .storedMore }
        }
    }

    var ends: [SessionEnd] { events.compactMap { if case .ended(let reason) = $0 { reason } else { nil } } }

    var withdrawals: [DeliveryMachine.Withdrawal] {
        events.compactMap { if case .withdrew(let withdrawal) = $0 { withdrawal } else { nil } }
    }
}
