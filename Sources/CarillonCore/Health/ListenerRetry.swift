/// Decides when a listener that closed is opened again, and when the server gives it up.
///
/// A listener that closed is opened after ``Limits/delay``, and again after each opening that fails, until openings have failed for
/// ``Limits/patience``. A listener that cannot be opened the first time is given up at once.
package struct ListenerRetry: Sendable {
    package struct Limits: Sendable {
        package var delay: Duration
        package var patience: Duration

        package init(delay: Duration = .milliseconds(200), patience: Duration = .seconds(10)) {
            self.delay = delay
            self.patience = patience
        }
    }

    package enum Action: Equatable, Sendable {
        case open(after: Duration)
        case giveUp
    }

    private let limits: Limits
    private var closedAt: ContinuousClock.Instant?

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// Whether the listener was open and closed, at least once.
    package var hasClosed: Bool { closedAt != nil }

    /// The listener was open, and closed without being told to.
    package mutating func closed(at now: ContinuousClock.Instant) -> Action {
        closedAt = now
        return .open(after: limits.delay)
    }

    package func openingFailed(at now: ContinuousClock.Instant) -> Action {
        guard let closedAt, now - closedAt < limits.patience else { return .giveUp }
        return .open(after: limits.delay)
    }
}
