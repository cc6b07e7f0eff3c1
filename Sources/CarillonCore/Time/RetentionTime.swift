/// The moment by which the server decides what it removes for good.
///
/// The wall clock alone must not decide this: it can be wrong for a while, and it runs on while the server is stopped. A limit
/// has passed when it has passed by the wall clock and by the time that the server was in service. ``ServedTime`` returns such
/// a moment only while nothing speaks against irreversible decisions.
package struct RetentionTime: Equatable, Sendable {
    /// By the wall clock.
    package var now: Timestamp
    /// How many seconds the server was in service, over all runs.
    package var served: Int64

    package init(now: Timestamp, served: Int64) {
        self.now = now
        self.served = served
    }

    /// The moment for a server that was never stopped and whose wall clock was never set.
    package static func uninterrupted(at now: Timestamp) -> RetentionTime {
        RetentionTime(now: now, served: .max / 2)
    }

    /// What was written by then has reached a limit.
    package func cutoff(afterSeconds limit: Int64) -> RetentionCutoff {
        RetentionCutoff(wall: now.adding(seconds: -limit), served: served - limit - Self.lagSeconds)
    }

    /// Rows carry the counter as the store has it, which is written once a minute.
    package static let lagSeconds: Int64 = 120
}

/// The latest values of a row that has reached a limit: both must be reached.
package struct RetentionCutoff: Equatable, Sendable {
    package var wall: Timestamp
    /// The value of the counter of served seconds.
    package var served: Int64

    package init(wall: Timestamp, served: Int64) {
        self.wall = wall
        self.served = served
    }
}
