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
/// address that does not answer is asked twelve times an hour, whatever comes. All moments are of the monotonic clock
/// (``TickSource``): a wall clock that is set makes nobody wait, and takes no keys away.
package struct UserKeyFetches: Sendable {
    package enum Step: Sendable {
        case fetch
        case use(UserKeySet)
        case unavailable(retryAfterSeconds: Int)
    }

    package static let spacingSeconds: Int64 = 300
    package static let staleSeconds: Int64 = 86_400

    private var keys: UserKeySet?
    private var fetchedAt: Int64?
    private var triedAt: Int64?

    package init() {}

    package func step(at now: Int64) -> Step {
        guard let triedAt, Self.seconds(from: triedAt, to: now) < Self.spacingSeconds else { return .fetch }
        if let keys = usable(at: now) { return .use(keys) }
        return .unavailable(retryAfterSeconds: secondsUntilNext(at: now))
    }

    /// Until they can be fetched again.
    package func secondsUntilNext(at now: Int64) -> Int {
        guard let triedAt else { return 1 }
        return Int(max(1, Self.spacingSeconds - Self.seconds(from: triedAt, to: now)))
    }

    private static func seconds(from earlier: Int64, to now: Int64) -> Int64 { (now - earlier) / 1_000_000_000 }

    /// Those of the last day.
    private func usable(at now: Int64) -> UserKeySet? {
        guard let keys, let fetchedAt, Self.seconds(from: fetchedAt, to: now) < Self.staleSeconds else { return nil }
        return keys
    }

    package mutating func began(at now: Int64) { triedAt = now }

    package mutating func succeeded(_ keys: UserKeySet, at now: Int64) { (self.keys, fetchedAt) = (keys, now) }
}
