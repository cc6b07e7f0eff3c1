import CarillonBasics

/// When to try again: the wait doubles with each failure and begins anew after a success.
///
/// Randomness comes in from outside, as a number from 0 up to 1.
struct ClientReconnectSchedule: Sendable {
    let backOff: PushClient.BackOff
    private var failures = 0

    init(_ backOff: PushClient.BackOff) { self.backOff = backOff }

    mutating func succeeded() { failures = 0 }

    /// The wait after one more failure.
    mutating func failed(random: Double) -> Duration {
        // Beyond 2^30 every sensible maximum is reached.
        let doubled = backOff.initial * (1 << min(failures, 30))
        failures += 1
        return min(backOff.maximum, doubled) * (1 - backOff.jitter * random)
    }

    /// Returns the wait after one more failure, and at least the wait that the server asked for.
    mutating func failed(hint: Duration?, random: Double) -> Duration {
        let usual = failed(random: random)
        return hint.map { max(usual, delay(after: $0, random: random)) } ?? usual
    }

    /// The wait that the server asked for, and a little more by chance. It is never less than the hint and never more than a day.
    func delay(after hint: Duration, random: Double) -> Duration {
        let longest = Duration.seconds(RetryAfter.longestSeconds)
        return min(longest, hint + max(backOff.initial, hint * 0.5) * (backOff.jitter * random))
    }
}
