#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The clocks of a client: a steady clock for durations, and the wall clock for the tokens that it signs.
public struct APNsTimeSource: Sendable {
    /// Distinguishes time sources.
    final class Identity: Sendable {}

    let identity = Identity()
    let elapsed: @Sendable () -> Duration
    let wallSeconds: @Sendable () -> Int64

    /// Makes a time source for tests. Deadlines and delays follow it: the client reads it every few hundredths of a second.
    /// - Parameters:
    ///   - elapsed: the time since any start. It must never go back, and must continue while the machine sleeps.
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
