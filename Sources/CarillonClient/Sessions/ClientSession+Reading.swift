/// Values that are derived from the session.
extension ClientSession {
    /// Whether the client runs.
    var isRunning: Bool { phase != .stopped }

    /// The identity for requests beside the socket. It is nil while the server refuses its credential and the registration is
    /// repeated. The requests wait until then.
    var usableIdentity: DeviceIdentity? { registration.mustRepeat ? nil : registration.identity }

    /// The owner of the updates that the device can receive.
    var updateScope: UpdateScope {
        UpdateScope(identity: registration.identity, user: user.accepted, isUserPending: user.pending != nil)
    }

    /// The number of the user report that the server has not answered; nil if the app named the user that the server knows.
    var pendingUserNumber: UInt64? { user.isOtherPending ? user.numbers.lastSet : nil }

    /// Returns the time until the next attempt to connect; nil if no attempt is due.
    func retryDelay(at now: ContinuousClock.Instant) -> Duration? {
        if case .waiting(let until) = phase { max(.zero, until - now) } else { nil }
    }

    /// Returns the time until the failed deregistration is sent again; nil if no deregistration failed.
    func deregistrationDelay(at now: ContinuousClock.Instant) -> Duration? {
        deregistrations.dueAt.map { max(.zero, $0 - now) }
    }
}
