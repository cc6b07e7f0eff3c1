/// Notices that a connection is dead: after a silence it asks for a sign of life, and when none comes it gives up.
struct KeepAlive: Sendable {
    enum Verdict: Equatable, Sendable {
        case none
        case ping
        case dead
    }

    /// How long the peer may be silent.
    let interval: Duration
    /// How long it may take to answer.
    let answerTime: Duration
    private var lastReceived: ContinuousClock.Instant
    private var pingedAt: ContinuousClock.Instant?

    init(interval: Duration, answerTime: Duration, at now: ContinuousClock.Instant) {
        self.interval = interval
        self.answerTime = answerTime
        lastReceived = now
    }

    /// When `timerFired` has something to say.
    var deadline: ContinuousClock.Instant {
        if let pingedAt { pingedAt + answerTime } else { lastReceived + interval }
    }

    mutating func received(at now: ContinuousClock.Instant) {
        lastReceived = now
        pingedAt = nil
    }

    mutating func timerFired(at now: ContinuousClock.Instant) -> Verdict {
        guard now >= deadline else { return .none }
        guard pingedAt == nil else { return .dead }
        pingedAt = now
        return .ping
    }
}
