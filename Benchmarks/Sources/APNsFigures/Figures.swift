/// The output of `apns-load`: one line of JSON, which the bench reads.
package enum Figures {
    /// One round of pushes.
    package struct Round: Codable, Sendable {
        package var pushes: Int
        package var seconds: Double
        /// The user and system time of the whole process.
        package var cpuMicroseconds: Double
        /// Pushes that were answered with another status than 200, or not answered.
        package var failures: Int

        package init(pushes: Int, seconds: Double, cpuMicroseconds: Double, failures: Int) {
            self.pushes = pushes
            self.seconds = seconds
            self.cpuMicroseconds = cpuMicroseconds
            self.failures = failures
        }
    }

    /// The figures of `apns-load push`.
    package struct Pushing: Codable, Sendable {
        /// The time from making the client until the response to its first push.
        package var firstMilliseconds: Double
        /// The round from making the client, including the first push.
        package var cold: Round
        package var warm: Round

        package init(firstMilliseconds: Double, cold: Round, warm: Round) {
            self.firstMilliseconds = firstMilliseconds
            self.cold = cold
            self.warm = warm
        }
    }

    /// The figures of `apns-load stall`.
    package struct Stall: Codable, Sendable {
        package var offered: Int
        package var answered: Int
        package var timedOut: Int
        /// Pushes that ended in another way.
        package var others: Int
        package var seconds: Double
        /// The resident memory after the connection was opened and before the first push.
        package var residentBefore: Int
        package var residentAfter: Int
        /// The largest resident memory of the process.
        package var residentAtMost: Int

        package init(
            offered: Int, answered: Int, timedOut: Int, others: Int, seconds: Double, residentBefore: Int,
            residentAfter: Int, residentAtMost: Int
        ) {
            self.offered = offered
            self.answered = answered
            self.timedOut = timedOut
            self.others = others
            self.seconds = seconds
            self.residentBefore = residentBefore
            self.residentAfter = residentAfter
            self.residentAtMost = residentAtMost
        }
    }

    /// The figures of `apns-load crowd`.
    package struct Crowd: Codable, Sendable {
        package var offered: Int
        /// The limit of pushes that are under way or waiting.
        package var bound: Int
        package var answered: Int
        /// Pushes that were rejected with `queueFull`.
        package var refused: Int
        /// Pushes that ended in another way before the measurement ended.
        package var others: Int
        package var residentBefore: Int
        package var residentAfter: Int

        package init(
            offered: Int, bound: Int, answered: Int, refused: Int, others: Int, residentBefore: Int, residentAfter: Int
        ) {
            self.offered = offered
            self.bound = bound
            self.answered = answered
            self.refused = refused
            self.others = others
            self.residentBefore = residentBefore
            self.residentAfter = residentAfter
        }
    }
}
