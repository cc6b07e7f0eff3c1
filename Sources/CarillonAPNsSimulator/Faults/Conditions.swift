extension APNsSimulator {
    /// The behaviour of the simulator towards connections. A connection keeps the conditions of its start.
    public struct Conditions: Hashable, Sendable {
        /// The server certificate in the TLS handshake.
        public enum Certificate: String, Hashable, Sendable, CaseIterable {
            /// A certificate for all names of the simulator, signed by its authority.
            case good
            /// A certificate for `other.example`.
            case wrongHost
            /// A certificate that expired yesterday.
            case expired
            /// A certificate that is valid from tomorrow.
            case notYetValid
            /// A self-signed certificate.
            case untrusted
        }

        /// The treatment of a new connection.
        public enum Welcome: String, Hashable, Sendable, CaseIterable {
            /// The connection is served.
            case served
            /// The connection is closed immediately.
            case closed
            /// The simulator sends nothing, not even for TLS.
            case silent
        }

        /// The treatment of a stream beyond the limit, after the client has acknowledged the limit.
        public enum Excess: String, Hashable, Sendable, CaseIterable {
            /// GOAWAY with "Maximum active streams violated", as observed at the real service.
            case goAway
            /// RST_STREAM REFUSED_STREAM.
            case refuse
        }

        /// The effect of a rejection on the stream limit.
        public enum Rejection: String, Hashable, Sendable, CaseIterable {
            /// The limit does not change.
            case nothing
            /// The limit falls to 1, and the next accepted push restores it, as observed at the real service.
            case lowersLimit
            /// The limit falls to 1, and the streams in flight are refused.
            case lowersLimitAndRefuses
        }

        /// The number of streams that can be open on a connection without a certificate, until a response shows that its
        /// provider token is valid: the push was accepted, or rejected for a reason that is unrelated to the credentials.
        public var firstStreams = 1
        /// The number of streams that can be open after that.
        public var streams = 1000
        /// The effect of a rejection on that limit.
        public var rejection = Rejection.nothing
        /// The treatment of a stream beyond the limit.
        public var excess = Excess.goAway
        /// The flow-control window of a stream: the bytes of a body that can be sent before a window update.
        public var streamWindow = 65_535
        /// The flow-control window of the connection, at most 65,535 bytes. It becomes smaller as the first 65,535 bytes are
        /// used. With 0 it is never opened again: the simulator reads nothing more.
        public var connectionWindow = 65_535
        /// The delay of all data, from the client to the simulator and back.
        public var roundTrip = Duration.zero
        /// Whether a PING is answered.
        public var answersPings = true
        /// The server certificate.
        public var certificate = Certificate.good
        /// The treatment of a new connection.
        public var welcome = Welcome.served
        /// The time without a request after which a connection ends with GOAWAY IdleTimeout; nil for never.
        public var idleTimeout: Duration?
        /// The number of successive BadDeviceToken responses after which a connection ends with a GOAWAY with this reason;
        /// nil for never.
        public var badDeviceTokens: Int?

        /// Makes conditions like those of the real service without faults.
        public init() {}
    }
}

typealias Conditions = APNsSimulator.Conditions
