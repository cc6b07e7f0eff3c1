/// Meters what one socket sends. Times are nanoseconds of a clock that is never set back.
///
/// Frames that were received are always counted. The meter returns how long the socket must not be read afterwards.
package struct FrameMeter: Equatable, Sendable {
    /// The moment at which the whole burst is free again.
    private var fullAt: Int64 = .min

    package init() {}

    /// Counts frames that came.
    ///
    /// - Returns: For how many nanoseconds no more may be read; nil if more may be read now.
    package mutating func count(_ frames: Int, of rate: Rate, at now: Int64) -> Int64? {
        let interval = max(1, 1_000_000_000 / Int64(rate.perSecond))
        fullAt = max(fullAt, now) + interval * Int64(frames)
        let beyond = fullAt - now - interval * Int64(rate.burst)
        return beyond >= 0 ? max(1, beyond) : nil
    }
}
