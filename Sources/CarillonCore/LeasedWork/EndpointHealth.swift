import CarillonBasics

/// The reliability of a host and port for one app.
///
/// - *on trial*: the peer never answered, its last call failed, or its last answer was slow. Left by a prompt answer.
/// - *proven*: the last answer was prompt. Left by a failure or a slow answer.
///
/// After more than two failures in a row, a peer is not called for some time. This rest grows with the duration and the number of
/// the failures, so that the peer uses a slot for ever less of the time. A peer that refuses at once costs little, and rests only
/// a tenth of a second, because many channels may have to be notified of the failure.
package struct EndpointHealth: Equatable, Sendable {
    package private(set) var isOnTrial: Bool
    /// The number of failures in a row.
    package private(set) var failures: Int

    package init(isOnTrial: Bool = true, failures: Int = 0) {
        self.isOnTrial = isOnTrial
        self.failures = failures
    }

    /// A slower answer occupies its slot for so long that it does not count as prompt.
    package static let promptMilliseconds: Int64 = 3000
    package static let longestRestMilliseconds: Int64 = 60_000
    private static let shortestRestMilliseconds: Int64 = 100
    private static let freeFailures = 2

    /// Returns the time until which the peer is not called.
    package mutating func called(_ result: CallResult, begunAt: Timestamp, at now: Timestamp) -> Timestamp {
        // If the clock was set back during the call, the duration is not known.
        let took = max(0, now.milliseconds - begunAt.milliseconds)
        switch result {
        case .answered:
            isOnTrial = took > Self.promptMilliseconds
            failures = 0
        case .failed:
            isOnTrial = true
            failures = min(failures + 1, 1000)
        case .notMade, .impossible:
            return now
        }
        guard failures > Self.freeFailures else { return now }
        let backOff = BackOff(first: took, longest: Self.longestRestMilliseconds)
        let rest = backOff.delay(doublings: min(failures - Self.freeFailures, 6))
        return now.adding(milliseconds: max(Self.shortestRestMilliseconds, rest))
    }
}
