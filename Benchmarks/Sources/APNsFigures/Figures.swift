/// What `apns-load` prints, as one line of JSON, and the bench reads.
package enum Figures {
    /// One round of pushes.
    package struct Round: Codable, Sendable {
        package var pushes: Int
        package var seconds: Double
        /// User and system time of the whole process.
        package var cpuMicroseconds: Double
        /// Answered with anything but 200, or not at all.
        package var failures: Int

        package init(pushes: Int, seconds: Double, cpuMicroseconds: Double, failures: Int) {
            self.pushes = pushes
            self.seconds = seconds
            self.cpuMicroseconds = cpuMicroseconds
            self.failures = failures
        }
    }

    /// `apns-load push`.
    package struct Pushing: Codable, Sendable {
        /// From making the client until its first push was answered.
        package var firstMilliseconds: Double
        /// From making the client on, with the first push.
        package var cold: Round
        package var warm: Round

        package init(firstMilliseconds: Double, cold: Round, warm: Round) {
            self.firstMilliseconds = firstMilliseconds
            self.cold = cold
            self.warm = warm
        }
    }

    /// `apns-load stall`.
    package struct Stall: Codable, Sendable {
        package var offered: Int
        package var answered: Int
        package var timedOut: Int
        /// Ended in another way.
        package var others: Int
        package var seconds: Double
        /// The resident memory when the connection stood and nothing was offered yet.
        package var residentBefore: Int
        package var residentAfter: Int
        /// The most at any time of the process.
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

    /// `apns-load busy peers`.
    package struct Crowd: Codable, Sendable {
        package var offered: Int
        /// The most that may be under way or wait.
        package var bound: Int
        package var answered: Int
        /// Refused with `queueFull`.
        package var refused: Int
        /// Ended in another way while they were offered.
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
