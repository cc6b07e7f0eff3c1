/// Limits the rate of frames of one socket. Times are nanoseconds of a monotonic clock.
///
/// Received frames are always counted. The meter returns for how long the socket must not be read afterwards.
package struct FrameMeter: Equatable, Sendable {
    /// The time at which the complete burst is available again.
    private var fullAt: Int64 = .min

    package init() {}

    /// Counts received frames.
    ///
    /// - Returns: The nanoseconds for which no more may be read; nil if more may be read now.
    package mutating func count(_ frames: Int, of rate: Rate, at now: Int64) -> Int64? {
        let interval = max(1, 1_000_000_000 / Int64(rate.perSecond))
        fullAt = max(fullAt, now) + interval * Int64(frames)
        let beyond = fullAt - now - interval * Int64(rate.burst)
        return beyond >= 0 ? max(1, beyond) : nil
    }
}
