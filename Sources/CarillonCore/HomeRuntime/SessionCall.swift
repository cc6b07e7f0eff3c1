package import CarillonWire

/// A call that a home makes to a session of a device. See the functions of ``LiveSession``.
package enum SessionCall: Sendable {
    case offer(Envelope)
    case offerVolatile(Envelope, answer: @Sendable (_ wasAccepted: Bool) -> Void)
    case storedMore
    case withdrew(DeliveryMachine.Withdrawal, done: @Sendable () -> Void)
    case finished([MessageID])
    case providersChanged
    case end(SessionEnd)
    case moving(done: @Sendable () -> Void)
    case moved(MoveEnd)

    /// Calls the function of the session.
    package func make(to session: any LiveSession) {
        switch self {
        case .offer(let envelope): session.offer(envelope)
        case .offerVolatile(let envelope, let answer): session.offerVolatile(envelope, answer: answer)
        case .storedMore: session.storedMore()
        case .withdrew(let withdrawal, let done): session.withdrew(withdrawal, done: done)
        case .finished(let ids): session.finished(ids)
        case .providersChanged: session.providersChanged()
        case .end(let reason): session.end(because: reason)
        case .moving(let done): session.moving(done: done)
        case .moved(let end): session.moved(end)
        }
    }
}
