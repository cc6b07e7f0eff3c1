extension APNsSimulator {
    /// How connections are treated. A connection keeps the conditions that it began with.
    public struct Conditions: Hashable, Sendable {
        /// What the service shows when TLS begins.
        public enum Certificate: String, Hashable, Sendable, CaseIterable {
            /// One that is signed by the simulator's authority for all its names.
            case good
            /// One for `other.example`.
            case wrongHost
            /// One that ended yesterday.
            case expired
            /// One that begins tomorrow.
            case notYetValid
            /// One that signed itself.
            case untrusted
        }

        /// What happens to somebody who connects.
        public enum Welcome: String, Hashable, Sendable, CaseIterable {
            /// The connection is served.
            case served
            /// It is closed at once.
            case closed
            /// Nothing is ever said, not even for TLS.
            case silent
        }

        /// What happens to a stream that is one too many, although the client has confirmed the limit.
        public enum Excess: String, Hashable, Sendable, CaseIterable {
            /// GOAWAY with "Maximum active streams violated", as was seen on the real service.
            case goAway
            /// RST_STREAM REFUSED_STREAM.
            case refuse
        }

        /// What a rejection does to the stream limit.
        public enum Rejection: String, Hashable, Sendable, CaseIterable {
            /// Nothing.
            case nothing
            /// It falls to 1, and the next accepted push restores it, as was seen on the real service.
            case lowersLimit
            /// It falls likewise, and streams in flight are refused.
            case lowersLimitAndRefuses
        }

        /// The streams that may be open on a connection without a certificate until an answer shows that its provider token
        /// is good: the push was accepted, or refused for a reason that has nothing to do with the credentials.
        public var firstStreams = 1
        /// The streams that may be open after that.
        public var streams = 1000
        /// What a rejection does to that limit.
        public var rejection = Rejection.nothing
        /// What happens to a stream beyond the limit.
        public var excess = Excess.goAway
        /// Bytes of a body that may be sent on a stream without asking.
        public var streamWindow = 65_535
        /// The window of the connection, at most 65,535; it narrows as the first 65,535 bytes are used. With 0 it is
        /// never opened again: a service that reads nothing more.
        public var connectionWindow = 65_535
        /// How long everything takes to the service and back.
        public var roundTrip = Duration.zero
        /// Whether a PING is answered.
        public var answersPings = true
        /// The certificate that is shown.
        public var certificate = Certificate.good
        /// What happens to somebody who connects.
        public var welcome = Welcome.served
        /// After how long without a request a connection ends with GOAWAY IdleTimeout; nil for never.
        public var idleTimeout: Duration?
        /// After how many BadDeviceToken in a row a connection ends with a GOAWAY that says so; nil for never.
        public var badDeviceTokens: Int?

        /// The real service on a good day.
        public init() {}
    }
}

typealias Conditions = APNsSimulator.Conditions
