import CarillonBasics

/// How a host and port that is called has behaved towards one app.
///
/// - *on trial*: it never answered, or did not the last time, or took long. Left by an answer that comes soon.
/// - *proven*: its last answer came soon. Left by a failure, or by an answer that took long.
///
/// A peer that fails more than twice in a row rests before its next call: the longer, the longer its failure took and
/// the more there were, so that it holds a slot for ever less of the time. One that refuses at once costs next to
/// nothing, and rests a tenth of a second only: there may be many channels to be told of it.
package struct EndpointHealth: Equatable, Sendable {
    package private(set) var isOnTrial: Bool
    /// In a row.
    package private(set) var failures: Int

    package init(isOnTrial: Bool = true, failures: Int = 0) {
        self.isOnTrial = isOnTrial
        self.failures = failures
    }

    /// An answer that takes longer holds its slot for so long that it is no proof.
    package static let promptMilliseconds: Int64 = 3000
    package static let longestRestMilliseconds: Int64 = 60_000
    private static let shortestRestMilliseconds: Int64 = 100
    private static let freeFailures = 2

    /// Answers until when the peer is not called.
    package mutating func called(_ result: CallResult, begunAt: Timestamp, at now: Timestamp) -> Timestamp {
        // A clock that was set back while the call was made measured nothing.
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
