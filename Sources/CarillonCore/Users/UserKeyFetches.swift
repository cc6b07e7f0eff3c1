import CarillonWire

/// Decides when an app's key set is fetched, and how long a fetched key set is used.
///
/// | Keys | Last attempt | When a token arrives |
/// |---|---|---|
/// | any | none, or at least five minutes ago | the keys are fetched first |
/// | fetched in the last day | less than five minutes ago | the token is verified with these keys |
/// | none, or older than a day | less than five minutes ago | the token is refused until the keys can be fetched again |
///
/// So a key that was removed from the set is accepted for at most five more minutes while the set can be fetched. An address that
/// does not answer is called at most twelve times per hour. A refusal can request a longer delay than five minutes, which
/// replaces the five minutes in the table. All times are of the monotonic clock (``TickSource``), so a change of the wall clock
/// delays no fetch and removes no keys.
package struct UserKeyFetches: Sendable {
    package enum Step: Sendable {
        case fetch
        case use(UserKeySet)
        case unavailable(retryAfterSeconds: Int)
    }

    package static let spacingSeconds: Int64 = 300
    package static let staleSeconds: Int64 = 86_400

    private static let second: Int64 = 1_000_000_000

    private var keys: UserKeySet?
    private var fetchedAt: Int64?
    /// The time of the next attempt; nil before the first.
    private var nextAt: Int64?

    package init() {}

    package func step(at now: Int64) -> Step {
        guard let nextAt, now < nextAt else { return .fetch }
        if let keys = usable(at: now) { return .use(keys) }
        return .unavailable(retryAfterSeconds: secondsUntilNext(at: now))
    }

    /// Returns the seconds until the keys can be fetched again.
    package func secondsUntilNext(at now: Int64) -> Int {
        guard let nextAt else { return 1 }
        return Int(max(1, (nextAt - now + Self.second - 1) / Self.second))
    }

    private static func seconds(from earlier: Int64, to now: Int64) -> Int64 { (now - earlier) / second }

    /// Returns the keys if they were fetched in the last day.
    private func usable(at now: Int64) -> UserKeySet? {
        guard let keys, let fetchedAt, Self.seconds(from: fetchedAt, to: now) < Self.staleSeconds else { return nil }
        return keys
    }

    package mutating func began(at now: Int64) { nextAt = now + Self.spacingSeconds * Self.second }

    /// An attempt failed.
    ///
    /// - Parameter wait: The delay that the response requested. It counts from now, and delays only the next attempt.
    package mutating func failed(wait: Duration?, at now: Int64) {
        guard let wait, let nextAt else { return }
        self.nextAt = max(nextAt, now + wait.components.seconds * Self.second)
    }

    package mutating func succeeded(_ keys: UserKeySet, at now: Int64) { (self.keys, fetchedAt) = (keys, now) }
}
