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

    /// The wait that the server asked for, and a little more by chance; never less than its hint.
    func delay(after hint: Duration, random: Double) -> Duration {
        hint + max(backOff.initial, hint * 0.5) * (backOff.jitter * random)
    }
}
