/// Decides when a listener that closed is opened again, and when the server stops trying.
///
/// A listener that closed is opened after ``Limits/delay``, and again after each opening that fails, until openings have failed
/// for ``Limits/patience``. If a listener cannot be opened the first time, the server does not try again. A listener that was
/// opened again counts as open when it has stayed open for ``Limits/steady``.
package struct ListenerRetry: Sendable {
    package struct Limits: Sendable {
        package var delay: Duration
        package var patience: Duration
        package var steady: Duration

        package init(
            delay: Duration = .milliseconds(200), patience: Duration = .seconds(10), steady: Duration = .seconds(1)
        ) {
            self.delay = delay
            self.patience = patience
            self.steady = steady
        }
    }

    package enum Action: Equatable, Sendable {
        case open(after: Duration)
        case giveUp
    }

    private let limits: Limits
    private var closedAt: ContinuousClock.Instant?
    private var reportedAt: ContinuousClock.Instant?
    private static let reportInterval = Duration.seconds(60)

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// Whether the listener was open and closed, at least once.
    package var hasClosed: Bool { closedAt != nil }

    /// An open listener closed, though the server did not close it.
    package mutating func closed(at now: ContinuousClock.Instant) -> Action {
        closedAt = now
        return .open(after: limits.delay)
    }

    /// Whether a closing is logged: at most one a minute.
    package mutating func isReported(at now: ContinuousClock.Instant) -> Bool {
        if let reportedAt, now - reportedAt < Self.reportInterval { return false }
        reportedAt = now
        return true
    }

    package func openingFailed(at now: ContinuousClock.Instant) -> Action {
        guard let closedAt, now - closedAt < limits.patience else { return .giveUp }
        return .open(after: limits.delay)
    }
}
