/// How often a device is woken: what was pushed to it since it last answered, and when.
///
/// Apple lets an app run in the background for a push two or three times an hour, and less for an app that does nothing with
/// it. So pushes are twenty minutes apart; after three that the device did not answer an hour goes by, then four, then a day.
/// The device answers by acknowledging an envelope, as it does after it has connected or polled.
package struct WakePace: Equatable, Sendable {
    /// Pushed since the device last answered.
    package var unanswered: Int
    /// When the last push was handed to the vendor.
    package var pushedAt: Timestamp?

    package init(unanswered: Int = 0, pushedAt: Timestamp? = nil) {
        self.unanswered = unanswered
        self.pushedAt = pushedAt
    }

    package static let shortestSeconds: Int64 = 20 * 60

    /// Whether pushes are rarer than they are to a device that answers.
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

    /// When a push may go out that is wanted at a moment.
    package func dueAt(_ wanted: Timestamp) -> Timestamp {
        // A clock that was set back holds nothing up for longer than the pause.
        guard let pushedAt else { return wanted }
        return max(wanted, min(pushedAt.adding(seconds: seconds), wanted.adding(seconds: seconds)))
    }

    package mutating func handed(at now: Timestamp) {
        unanswered += 1
        pushedAt = now
    }

    package mutating func answered() { unanswered = 0 }

    /// Whether it says nothing that a new one would not.
    package func isForgettable(at now: Timestamp) -> Bool { unanswered == 0 && dueAt(now) <= now }
}
