import CarillonCore
import CarillonWire
import Synchronization

/// A session that stores the calls of its home, and delivers nothing.
final class MovingSession: LiveSession {
    enum Event: Equatable, Sendable {
        case offered, storedMore, withdrew, moving, stays, gone
        case ended(SessionEnd)
    }

    private let state = Mutex<[Event]>([])
    private let answersMoves: Bool

    /// - Parameter answersMoves: Whether it answers the beginning of a move.
    init(answersMoves: Bool = true) { self.answersMoves = answersMoves }

    var events: [Event] { state.withLock { $0 } }

    private func note(_ event: Event) { state.withLock { $0.append(event) } }

    func offer(_ envelope: Envelope) { note(.offered) }
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
    func storedMore() { note(.storedMore) }
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        note(.withdrew)
        done()
    }
    func finished(_ ids: [MessageID]) {}
    func end(because reason: SessionEnd) { note(.ended(reason)) }

    func moving(done: @escaping @Sendable () -> Void) {
        note(.moving)
        if answersMoves { done() }
    }

    func moved(_ end: MoveEnd) {
        switch end {
        case .stays: note(.stays)
        case .gone, .arrives: note(.gone)
        }
    }
}
