extension APNsSimulator {
    /// A device token in the simulator: one app on one device, for one APNs topic.
    public struct Device: Hashable, Sendable {
        /// The state of the token.
        public enum State: Hashable, Sendable {
            /// Pushes are accepted.
            case active
            /// The app was removed from the device at this time (milliseconds since 1970). The response to a push is 410
            /// Unregistered.
            case unregistered(since: Int64)
            /// The token was replaced at this time (milliseconds since 1970). The response to a push is 410 ExpiredToken.
            case expired(since: Int64)
        }

        /// The token in hexadecimal, of any length, in lower case.
        public var token: String
        /// The only APNs topic for which the token is valid, including the suffix.
        public var topic: String
        /// The only environment for which the token is valid.
        public var environment: Environment
        /// The state of the token.
        public var state: State
        /// Whether pushes are shown immediately. Otherwise one notification of each app waits.
        public var isOnline: Bool

        /// Makes a device that can be added to a simulator.
        public init(
            token: String, topic: String, environment: Environment = .sandbox, state: State = .active, isOnline: Bool = true
        ) {
            self.token = token.lowercased()
            self.topic = topic
            self.environment = environment
            self.state = state
            self.isOnline = isOnline
        }
    }

    /// The pushes to a device, and their results.
    public struct DeviceReport: Sendable {
        /// The present state of the device.
        public var device: Device
        /// The notifications that the device would show, or that were delivered to the app, the oldest first. Replaced
        /// notifications are not included.
        public var shown: [DeliveredNotification]
        /// The notifications that wait until the device is online: one for each app.
        public var waiting: [DeliveredNotification]
        /// The number of notifications that replaced another one, either on the screen by a collapse identifier or while they
        /// waited.
        public var replaced: Int
        /// The number of notifications that were not stored because their expiration was 0.
        public var discarded: Int
        /// The number of notifications that expired while they waited.
        public var expired: Int
    }

    /// A notification that the simulator accepted for a device.
    public struct DeliveredNotification: Hashable, Sendable {
        /// The `apns-id`.
        public var id: String
        /// The APNs topic, including the suffix.
        public var topic: String
        /// The push type of the request; nil if the request had no push type.
        public var pushType: String?
        /// The priority; 10 if the request had none.
        public var priority: Int
        /// The collapse identifier.
        public var collapseID: String?
        /// The payload, byte for byte.
        public var payload: [UInt8]
        /// The time at which the simulator accepted the notification, in milliseconds since 1970.
        public var acceptedAt: Int64
        /// The time until which the notification can wait, in milliseconds since 1970; nil for one attempt only.
        public var expiresAt: Int64?
    }
}

typealias Device = APNsSimulator.Device
