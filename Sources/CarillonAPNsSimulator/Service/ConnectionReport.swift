extension APNsSimulator {
    /// The actions of a client on one connection, for tests of a provider.
    public struct ConnectionReport: Hashable, Sendable {
        /// The number of the connection, counted from 1 in the order of arrival.
        public var number: Int
        /// The environment of the connection's port.
        public var environment: Environment
        /// The time of the start, in milliseconds since 1970.
        public var openedAt: Int64
        /// The time of the end, in milliseconds since 1970; nil while the connection is open.
        public var closedAt: Int64?
        /// Whether the client presented a certificate.
        public var hasCertificate = false
        /// The protocol that TLS negotiated: `h2`, or nil without ALPN.
        public var negotiatedProtocol: String?
        /// The number of requests whose headers were received.
        public var requests = 0
        /// The number of accepted requests.
        public var accepted = 0
        /// The largest number of concurrent streams.
        public var mostStreams = 0
        /// The largest number of concurrent streams before the first response that showed that the credentials are valid,
        /// including refused streams.
        public var mostStreamsAtFirst = 0
        /// The number of streams that were refused because they exceeded the limit.
        public var refusedStreams = 0
        /// The number of PING frames from the client.
        public var pings = 0
        /// The number of PRIORITY frames, which a client of APNs should not send.
        public var priorityFrames = 0
        /// The number of streams that the client reset.
        public var resets = 0
        /// The length of the newest header block in bytes.
        public var headerBlockBytes = 0
        /// The number of different provider tokens, valid or not.
        public var providerTokens = 0
    }
}

typealias ConnectionReport = APNsSimulator.ConnectionReport
