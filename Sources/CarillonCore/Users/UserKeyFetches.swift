import CarillonWire

/// When an app's key set is fetched, and how long the last one is good for.
///
/// | Keys | Last attempt | A token comes |
/// |---|---|---|
/// | any | none, or five minutes ago | they are fetched first |
/// | of this day | less than five minutes ago | it is verified with them |
/// | none, or older than a day | less than five minutes ago | it is refused until they can be fetched again |
///
/// So a key that was taken out of the set is not believed for longer than five minutes while the set can be fetched, and an
/// address that does not answer is asked twelve times an hour, whatever comes.
package struct UserKeyFetches: Sendable {
    package enum Step: Sendable {
        case fetch
        case use(UserKeySet)
        case unavailable(retryAfterSeconds: Int)
    }

    package static let spacingSeconds: Int64 = 300
    package static let staleSeconds: Int64 = 86_400

    private var keys: UserKeySet?
    private var fetchedAt: Timestamp?
    private var triedAt: Timestamp?

    package init() {}

    package func step(at now: Timestamp) -> Step {
        // A clock that was set back makes nobody wait.
        guard let triedAt, triedAt <= now, now < triedAt.adding(seconds: Self.spacingSeconds) else { return .fetch }
        if let keys = usable(at: now) { return .use(keys) }
        return .unavailable(retryAfterSeconds: secondsUntilNext(at: now))
    }

    /// Until they can be fetched again.
    package func secondsUntilNext(at now: Timestamp) -> Int {
        guard let triedAt else { return 1 }
        return Int(max(1, triedAt.adding(seconds: Self.spacingSeconds).seconds - now.seconds))
    }

    /// Those of the last day.
    private func usable(at now: Timestamp) -> UserKeySet? {
        guard let keys, let fetchedAt, now < fetchedAt.adding(seconds: Self.staleSeconds) else { return nil }
        return keys
    }

    package mutating func began(at now: Timestamp) { triedAt = now }

    package mutating func succeeded(_ keys: UserKeySet, at now: Timestamp) { (self.keys, fetchedAt) = (keys, now) }
}
