/// The pace of wakes of a device: the number of pushes since the device last answered, and the time of the last push.
///
/// Apple lets an app run in the background for a push two or three times an hour, and less often if the app does nothing with it.
/// Therefore pushes are twenty minutes apart. After three pushes without an answer of the device, the interval is an hour, then
/// four hours, then a day. The device answers by acknowledging an envelope, or by connecting or polling if its pace is slow.
package struct WakePace: Equatable, Sendable {
    /// The number of pushes since the device last answered.
    package var unanswered: Int
    /// The time at which the last push was handed to the vendor.
    package var pushedAt: Timestamp?

    package init(unanswered: Int = 0, pushedAt: Timestamp? = nil) {
        self.unanswered = unanswered
        self.pushedAt = pushedAt
    }

    package static let shortestSeconds: Int64 = 20 * 60

    /// Whether pushes are less frequent than to a device that answers.
    package var isSlow: Bool { unanswered >= Self.slowFrom }

    private static let slowFrom = 3

    private var seconds: Int64 {
        switch unanswered {
        case ..<Self.slowFrom: Self.shortestSeconds
        case Self.slowFrom: 3600
        case Self.slowFrom + 1: 4 * 3600
        default: 86_400
        }
    }

    /// Returns the earliest time at which a push can be sent that is requested for a time.
    package func dueAt(_ wanted: Timestamp) -> Timestamp {
        // A clock that was set back delays nothing for longer than the interval.
        guard let pushedAt else { return wanted }
        return max(wanted, min(pushedAt.adding(seconds: seconds), wanted.adding(seconds: seconds)))
    }

    package mutating func handed(at now: Timestamp) {
        unanswered += 1
        pushedAt = now
    }

    package mutating func answered() { unanswered = 0 }

    /// Whether the pace is the same as a new one.
    package func isForgettable(at now: Timestamp) -> Bool { unanswered == 0 && dueAt(now) <= now }
}
