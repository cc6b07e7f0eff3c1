extension APNsSimulator {
    /// A request that reached the service, and what it was told.
    public struct ReceivedRequest: Hashable, Sendable {
        /// Counts all requests from 1.
        public var number: Int
        /// The connection that it came on; the first is 1.
        public var connection: Int
        /// Its stream.
        public var stream: UInt32
        /// When, in milliseconds since 1970.
        public var receivedAt: Int64
        /// The environment that was asked.
        public var environment: Environment
        /// `POST`, as a rule.
        public var method: String
        /// As it was sent.
        public var path: String
        /// The headers that mean something to APNs, except `authorization`.
        public var headers: [String: String]
        /// The key identifier of the provider token; nil with a certificate, or when no token was good.
        public var keyID: String?
        /// Exactly what was sent; empty when bodies are not recorded.
        public var payload: [UInt8]
        /// How many bytes were sent.
        public var payloadBytes: Int
        /// What was answered, or would have been, had no fault come between.
        public var status: Int
        /// The reason; nil for success.
        public var reason: Reason?
        /// The `apns-id` of the answer; nil for broadcasts and channels.
        public var id: String?
    }

    /// How many requests there were.
    public struct Totals: Hashable, Sendable {
        /// Whole requests that were processed.
        public var requests = 0
        /// Those that were accepted.
        public var accepted = 0
        /// Those that were not, by reason.
        public var rejected: [Reason: Int] = [:]
        /// Faults that happened.
        public var faults = 0

        /// None.
        public init() {}
    }
}
