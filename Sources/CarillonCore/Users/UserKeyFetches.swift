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
/// address that does not answer is asked twelve times an hour, whatever comes. A refusal can ask for a longer wait than five
/// minutes, which takes their place in the table. All moments are of the monotonic clock (``TickSource``): a wall clock that
/// is set makes nobody wait, and takes no keys away.
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
    /// The moment of the next attempt; nil before the first.
    private var nextAt: Int64?

    package init() {}

    package func step(at now: Int64) -> Step {
        guard let nextAt, now < nextAt else { return .fetch }
        if let keys = usable(at: now) { return .use(keys) }
        return .unavailable(retryAfterSeconds: secondsUntilNext(at: now))
    }

    /// Until they can be fetched again.
    package func secondsUntilNext(at now: Int64) -> Int {
        guard let nextAt else { return 1 }
        return Int(max(1, (nextAt - now + Self.second - 1) / Self.second))
    }

    private static func seconds(from earlier: Int64, to now: Int64) -> Int64 { (now - earlier) / second }

    /// Those of the last day.
    private func usable(at now: Int64) -> UserKeySet? {
        guard let keys, let fetchedAt, Self.seconds(from: fetchedAt, to: now) < Self.staleSeconds else { return nil }
        return keys
    }

    package mutating func began(at now: Int64) { nextAt = now + Self.spacingSeconds * Self.second }

    /// An attempt failed.
    ///
    /// - Parameter wait: The wait that the answer asked for. It counts from now, and delays the next attempt only.
    package mutating func failed(wait: Duration?, at now: Int64) {
        guard let wait, let nextAt else { return }
        self.nextAt = max(nextAt, now + wait.components.seconds * Self.second)
    }

    package mutating func succeeded(_ keys: UserKeySet, at now: Int64) { (self.keys, fetchedAt) = (keys, now) }
}
