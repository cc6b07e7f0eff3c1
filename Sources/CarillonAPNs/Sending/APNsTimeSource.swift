#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Where a client gets the time from: a steady clock for spans, the wall clock for the tokens it signs.
public struct APNsTimeSource: Sendable {
    /// Tells one time source from another.
    final class Identity: Sendable {}

    let identity = Identity()
    let elapsed: @Sendable () -> Duration
    let wallSeconds: @Sendable () -> Int64

    /// A time source of one's own, for tests. Deadlines and delays follow it: the client looks at it every few hundredths
    /// of a second.
    /// - Parameters:
    ///   - elapsed: the time since any beginning; it must never go back, and go on while the machine sleeps.
    ///   - secondsSince1970: the wall clock.
    public init(elapsed: @escaping @Sendable () -> Duration, secondsSince1970: @escaping @Sendable () -> Int64) {
        self.elapsed = elapsed
        wallSeconds = secondsSince1970
    }

    func now() -> Moment { Moment(nanoseconds: elapsed().wholeNanoseconds) }

    /// The machine's clocks.
    public static let system: APNsTimeSource = {
        let start = ContinuousClock.now
        return APNsTimeSource(
            elapsed: { ContinuousClock.now - start }, secondsSince1970: { WholeSeconds.of(Date()) })
    }()
}
