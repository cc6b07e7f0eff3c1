extension APNsSimulator {
    /// A request that reached the simulator, with its response.
    public struct ReceivedRequest: Hashable, Sendable {
        /// The number of the request, counted from 1.
        public var number: Int
        /// The number of the connection; the first is 1.
        public var connection: Int
        /// The number of the stream.
        public var stream: UInt32
        /// The time of arrival, in milliseconds since 1970.
        public var receivedAt: Int64
        /// The environment of the request.
        public var environment: Environment
        /// The method, usually `POST`.
        public var method: String
        /// The path, as it was sent.
        public var path: String
        /// The headers that APNs uses, except `authorization`.
        public var headers: [String: String]
        /// The key ID of the provider token; nil with a certificate, or if no token was valid.
        public var keyID: String?
        /// The body, byte for byte; empty if bodies are not recorded.
        public var payload: [UInt8]
        /// The length of the body in bytes.
        public var payloadBytes: Int
        /// The status of the response, before a fault rule changed it.
        public var status: Int
        /// The reason; nil for an accepted request.
        public var reason: Reason?
        /// The `apns-id` of the response; nil for broadcasts and channels.
        public var id: String?
    }

    /// The numbers of requests and faults.
    public struct Totals: Hashable, Sendable {
        /// The number of complete requests that were processed.
        public var requests = 0
        /// The number of accepted requests.
        public var accepted = 0
        /// The numbers of rejected requests, by reason.
        public var rejected: [Reason: Int] = [:]
        /// The number of faults that happened.
        public var faults = 0

        /// Makes totals of zero.
        public init() {}
    }
}
