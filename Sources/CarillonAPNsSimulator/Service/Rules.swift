extension APNsSimulator {
    /// The treatment of a device token that is not in the book.
    public enum UnknownDevices: String, Hashable, Sendable, CaseIterable {
        /// Rejects the push with BadDeviceToken, as the real service does.
        case refuse
        /// Adds the token to the book, for the APNs topic of the push.
        case register
        /// Accepts the push and records nothing: for benchmarks.
        case accept
    }

    /// The rules of the simulated service that can be changed. The defaults are the rules of the real service, except that
    /// any app is accepted.
    public struct Rules: Hashable, Sendable {
        /// The treatment of device tokens that are not in the book.
        public var unknownDevices = UnknownDevices.refuse
        /// Whether any well-formed APNs topic is accepted. Otherwise only the APNs topics of added apps are accepted.
        public var acceptsUnknownApps = true
        /// The number of requests to one device in a minute, beyond which the response is TooManyRequests; nil for no limit.
        public var requestsPerDeviceAndMinute: Int?
        /// The largest number of broadcast channels of an app in one environment.
        public var channelsPerApp = 10_000
        /// Whether a connection returns ExpiredProviderToken or TooManyProviderTokenUpdates for all later requests after the
        /// first, as users of the real service have observed.
        public var tokenTroubleStays = false

        /// Makes the default rules.
        public init() {}
    }
}

typealias Rules = APNsSimulator.Rules
