/// The time that decides which data the server removes permanently.
///
/// The wall clock alone must not decide this: it can be wrong for a while, and it continues while the server is stopped. A limit
/// has passed when it has passed by the wall clock and by the time for which the server was in service. ``ServedTime`` returns
/// this time only while irreversible decisions are allowed.
package struct RetentionTime: Equatable, Sendable {
    /// The time of the wall clock.
    package var now: Timestamp
    /// The number of seconds for which the server was in service, over all runs.
    package var served: Int64

    package init(now: Timestamp, served: Int64) {
        self.now = now
        self.served = served
    }

    /// Returns the time for a server that was never stopped and whose wall clock was never set.
    package static func uninterrupted(at now: Timestamp) -> RetentionTime {
        RetentionTime(now: now, served: .max / 2)
    }

    /// Returns the latest values of rows that have reached a limit.
    package func cutoff(afterSeconds limit: Int64) -> RetentionCutoff {
        RetentionCutoff(wall: now.adding(seconds: -limit), served: served - limit - Self.lagSeconds)
    }

    /// Rows contain the counter in the store, which is written once a minute.
    package static let lagSeconds: Int64 = 120
}

/// The latest values of a row that has reached a limit. The row must be at or before both values.
package struct RetentionCutoff: Equatable, Sendable {
    package var wall: Timestamp
    /// The value of the counter of served seconds.
    package var served: Int64

    package init(wall: Timestamp, served: Int64) {
        self.wall = wall
        self.served = served
    }
}
