/// Notices that a connection is dead: after a silence it asks for a sign of life, and when none comes it gives up.
struct KeepAlive: Sendable {
    enum Verdict: Equatable, Sendable {
        case none
        case ask
        case dead
    }

    /// How long the peer may be silent.
    let interval: Duration
    /// How long it may take to answer.
    let answerTime: Duration
    private var lastHeard: ContinuousClock.Instant
    private var asked: ContinuousClock.Instant?

    init(interval: Duration, answerTime: Duration, at now: ContinuousClock.Instant) {
        self.interval = interval
        self.answerTime = answerTime
        lastHeard = now
    }

    /// When `timerFired` has something to say.
    var deadline: ContinuousClock.Instant {
        if let asked { asked + answerTime } else { lastHeard + interval }
    }

    mutating func heard(at now: ContinuousClock.Instant) {
        lastHeard = now
        asked = nil
    }

    mutating func timerFired(at now: ContinuousClock.Instant) -> Verdict {
        guard now >= deadline else { return .none }
        guard asked == nil else { return .dead }
        asked = now
        return .ask
    }
}
