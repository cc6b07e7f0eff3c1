import CarillonBasics

/// Calculates the delay before the next attempt. The delay doubles with each failure, and starts again after a success.
///
/// Each random number is from 0 up to 1.
struct ClientReconnectSchedule: Sendable {
    private let backOff: BackOff<Duration>
    /// The part of each delay that is random, from 0 to 1.
    private let jitter: Double
    private var failures = 0

    init(_ backOff: PushClient.BackOff) {
        self.backOff = BackOff(first: backOff.initial, longest: backOff.maximum)
        jitter = backOff.jitter
    }

    mutating func succeeded() { failures = 0 }

    /// Counts a failure, and returns the delay after it.
    mutating func failed(random: Double) -> Duration {
        defer { failures += 1 }
        return backOff.delay(doublings: failures) * (1 - jitter * random)
    }

    /// Counts a failure, and returns the delay after it, which is at least the delay that the server asked for.
    mutating func failed(hint: Duration?, random: Double) -> Duration {
        let usual = failed(random: random)
        return hint.map { max(usual, delay(after: $0, random: random)) } ?? usual
    }

    /// Returns the delay that the server asked for with a random addition: at least the hint, and at most a day.
    func delay(after hint: Duration, random: Double) -> Duration {
        let longest = Duration.seconds(RetryAfter.longestSeconds)
        return min(longest, hint + max(backOff.first, hint * 0.5) * (jitter * random))
    }
}
