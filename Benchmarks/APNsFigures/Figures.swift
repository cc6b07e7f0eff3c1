/// The output of `apns-load`: one line of JSON, which the bench reads.
public enum Figures {
    /// One round of pushes.
    public struct Round: Codable, Sendable {
        public var pushes: Int
        public var seconds: Double
        /// The user and system time of the whole process.
        public var cpuMicroseconds: Double
        /// Pushes that were answered with another status than 200, or not answered.
        public var failures: Int

        public init(pushes: Int, seconds: Double, cpuMicroseconds: Double, failures: Int) {
            self.pushes = pushes
            self.seconds = seconds
            self.cpuMicroseconds = cpuMicroseconds
            self.failures = failures
        }
    }

    /// The figures of `apns-load push`.
    public struct Pushing: Codable, Sendable {
        /// The time from making the client until the response to its first push.
        public var firstMilliseconds: Double
        /// The round from making the client, including the first push.
        public var cold: Round
        public var warm: Round

        public init(firstMilliseconds: Double, cold: Round, warm: Round) {
            self.firstMilliseconds = firstMilliseconds
            self.cold = cold
            self.warm = warm
        }
    }

    /// The figures of `apns-load stall`.
    public struct Stall: Codable, Sendable {
        public var offered: Int
        public var answered: Int
        public var timedOut: Int
        /// Pushes that ended in another way.
        public var others: Int
        public var seconds: Double
        /// The resident memory after the connection was opened and before the first push.
        public var residentBefore: Int
        public var residentAfter: Int
        /// The largest resident memory of the process.
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

    /// The figures of `apns-load crowd`.
    public struct Crowd: Codable, Sendable {
        public var offered: Int
        /// The limit of pushes that are under way or waiting.
        public var bound: Int
        public var answered: Int
        /// Pushes that were rejected with `queueFull`.
        public var refused: Int
        /// Pushes that ended in another way before the measurement ended.
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
