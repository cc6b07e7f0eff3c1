extension APNsSimulator {
    /// What a client did on one connection: what a test of a provider wants to know.
    public struct ConnectionReport: Hashable, Sendable {
        /// Counts connections from 1, in the order in which they came.
        public var number: Int
        /// The environment of its port.
        public var environment: Environment
        /// When it came, in milliseconds since 1970.
        public var openedAt: Int64
        /// When it ended; nil while it is open.
        public var closedAt: Int64?
        /// Whether the client showed a certificate.
        public var hasCertificate = false
        /// What TLS agreed on: `h2`, or nil without ALPN.
        public var negotiatedProtocol: String?
        /// Requests whose headers came.
        public var requests = 0
        /// Requests that were accepted.
        public var accepted = 0
        /// The most streams that were open at a time.
        public var mostStreams = 0
        /// The same before the first answer that showed that the credentials are good, refused ones included.
        public var mostStreamsAtFirst = 0
        /// Streams that were refused, because they were too many.
        public var refusedStreams = 0
        /// PINGs of the client.
        public var pings = 0
        /// PRIORITY frames, which a client of APNs should not send.
        public var priorityFrames = 0
        /// Streams that the client reset.
        public var resets = 0
        /// The length of the newest header block on the wire.
        public var headerBlockBytes = 0
        /// Different provider tokens, good or not.
        public var providerTokens = 0
    }
}

typealias ConnectionReport = APNsSimulator.ConnectionReport
