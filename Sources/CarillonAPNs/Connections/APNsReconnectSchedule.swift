import CarillonBasics

/// The time of the next connection attempt after failures. The delay is at most 1 second at first, and doubles up to 60
/// seconds. Its second half is random, so that many providers do not reconnect at the same time.
struct APNsReconnectSchedule: Sendable {
    private static let backOffSeconds = BackOff<Int64>(first: 1, longest: 60)
    private(set) var failures = 0
    private(set) var notBefore: Moment?

    /// Counts a failed attempt. Attempts that are made together and fail together count as one.
    /// - Parameter random: from 0 to 1.
    mutating func failed(_ now: Moment, random: Double) {
        guard allows(now) else { return }
        let seconds = Self.backOffSeconds.delay(doublings: failures)
        failures += 1
        // The delay is between half and the whole, so that the second attempt is never immediate.
        notBefore = now + .milliseconds(Int64(Double(seconds) * 1000 * (0.5 + random / 2)))
    }

    mutating func succeeded() { self = APNsReconnectSchedule() }

    func allows(_ now: Moment) -> Bool { notBefore.map { $0 <= now } ?? true }
}
