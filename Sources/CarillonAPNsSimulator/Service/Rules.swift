extension APNsSimulator {
    /// What the service does with a device token that is not in its book.
    public enum UnknownDevices: String, Hashable, Sendable, CaseIterable {
        /// It refuses it with BadDeviceToken, as the real service does.
        case refuse
        /// It adds it to the book, for the topic that was pushed to.
        case register
        /// It accepts the push and remembers nothing: for benchmarks.
        case accept
    }

    /// How strict the service is, where the developer may choose. The defaults are the real service's.
    public struct Rules: Hashable, Sendable {
        /// What is done with device tokens that are not in the book.
        public var unknownDevices = UnknownDevices.refuse
        /// Whether any well-formed topic is taken; otherwise only those of apps that were added.
        public var acceptsUnknownApps = true
        /// How many requests one device may get in a minute before the answer is TooManyRequests; nil for any number.
        public var requestsPerDeviceAndMinute: Int?
        /// How many broadcast channels an app may have in one environment.
        public var channelsPerApp = 10_000
        /// Whether ExpiredProviderToken and TooManyProviderTokenUpdates are the answer to all that follows on the same
        /// connection, as users of the real service have seen.
        public var tokenTroubleStays = false

        /// The real service's rules.
        public init() {}
    }
}

typealias Rules = APNsSimulator.Rules
