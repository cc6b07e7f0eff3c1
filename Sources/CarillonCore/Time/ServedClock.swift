/// Counts the seconds for which the server was in service, and decides whether its wall clock is reliable.
///
/// - *unsettled*: in the first hour of a run, and in the hour after the wall clock moved by more than two minutes against the
///   monotonic clock. Left by an hour without such a step.
/// - *settled*: irreversible decisions may be made. Left by a step.
package struct ServedClock: Equatable, Sendable {
    package static let settlingSeconds: Int64 = 3600
    package static let toleratedSeconds: Int64 = 120

    /// The seconds of earlier runs.
    private let earlierSeconds: Int64
    private let startedAt: Int64
    private var unsettledSince: Int64
    /// The wall clock minus the monotonic clock, in milliseconds, at the start of the run or after the last step.
    private var offset: Int64?

    /// - Parameter ticks: The value of a ``TickSource``, as in all methods.
    package init(earlierSeconds: Int64, startedAt ticks: Int64) {
        self.earlierSeconds = earlierSeconds
        startedAt = ticks
        unsettledSince = ticks
    }

    /// The clocks were read.
    ///
    /// - Returns: The number of seconds by which the wall clock was set; nil if it was not set.
    package mutating func read(_ wall: Timestamp, _ ticks: Int64) -> Int64? {
        let read = wall.milliseconds.subtractingReportingOverflow(ticks / 1_000_000).partialValue
        guard let offset else {
            self.offset = read
            return nil
        }
        let (moved, overflow) = read.subtractingReportingOverflow(offset)
        guard overflow || moved.magnitude > UInt64(Self.toleratedSeconds * 1000) else { return nil }
        self.offset = read
        unsettledSince = ticks
        return moved / 1000
    }

    package func served(at ticks: Int64) -> Int64 { earlierSeconds + (ticks - startedAt) / Self.nanosecondsPerSecond }

    package func isSettled(at ticks: Int64) -> Bool {
        ticks - unsettledSince >= Self.settlingSeconds * Self.nanosecondsPerSecond
    }

    private static let nanosecondsPerSecond: Int64 = 1_000_000_000
}
