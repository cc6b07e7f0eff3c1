/// What `apns-load` prints, as one line of JSON, and the bench reads.
public enum Figures {
    /// One round of pushes.
    public struct Round: Codable, Sendable {
        public var pushes: Int
        public var seconds: Double
        /// User and system time of the whole process.
        public var cpuMicroseconds: Double
        /// Answered with anything but 200, or not at all.
        public var failures: Int

        public init(pushes: Int, seconds: Double, cpuMicroseconds: Double, failures: Int) {
            self.pushes = pushes
            self.seconds = seconds
            self.cpuMicroseconds = cpuMicroseconds
            self.failures = failures
        }
    }

    /// `apns-load push`.
    public struct Pushing: Codable, Sendable {
        /// From making the client until its first push was answered.
        public var firstMilliseconds: Double
        /// From making the client on, with the first push.
        public var cold: Round
        public var warm: Round

        public init(firstMilliseconds: Double, cold: Round, warm: Round) {
            self.firstMilliseconds = firstMilliseconds
            self.cold = cold
            self.warm = warm
        }
    }

    /// `apns-load stall`.
    public struct Stall: Codable, Sendable {
        public var offered: Int
        public var answered: Int
        public var timedOut: Int
        /// Ended in another way.
        public var others: Int
        public var seconds: Double
        /// The resident memory when the connection stood and nothing was offered yet.
        public var residentBefore: Int
        public var residentAfter: Int
        /// The most at any time of the process.
        public var residentAtMost: Int

        public init(
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

    /// `apns-load crowd`.
    public struct Crowd: Codable, Sendable {
        public var offered: Int
        /// The most that may be under way or wait.
        public var bound: Int
        public var answered: Int
        /// Refused with `queueFull`.
        public var refused: Int
        /// Ended in another way while they were offered.
        public var others: Int
        public var residentBefore: Int
        public var residentAfter: Int

        public init(
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
