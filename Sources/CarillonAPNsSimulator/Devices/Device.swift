extension APNsSimulator {
    /// A device token, as the service knows it: one app on one device, for one topic.
    public struct Device: Hashable, Sendable {
        /// What became of the token.
        public enum State: Hashable, Sendable {
            /// Pushes are taken.
            case active
            /// The app was deleted, or the user has gone, at this time (milliseconds since 1970): 410 Unregistered.
            case unregistered(since: Int64)
            /// The token was replaced at this time (milliseconds since 1970): 410 ExpiredToken.
            case expired(since: Int64)
        }

        /// In hexadecimal, of any length, in small letters.
        public var token: String
        /// The only topic that it is for, suffix included.
        public var topic: String
        /// The only environment that it is for.
        public var environment: Environment
        /// What became of it.
        public var state: State
        /// Whether pushes are shown at once; otherwise one of each app waits.
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

    /// What a device was pushed, and what came of it.
    public struct DeviceReport: Sendable {
        /// The device as it is now.
        public var device: Device
        /// What would be on its screen, or was handed to the app, the oldest first; collapsed ones are gone from it.
        public var shown: [DeliveredNotification]
        /// What waits until the device is online: one notification for each app.
        public var waiting: [DeliveredNotification]
        /// How many replaced another, on the screen by a collapse identifier or while they waited.
        public var replaced: Int
        /// How many were not stored, because their expiration was 0.
        public var discarded: Int
        /// How many expired while they waited.
        public var expired: Int
    }

    /// A notification that the service accepted for a device.
    public struct DeliveredNotification: Hashable, Sendable {
        /// The `apns-id`.
        public var id: String
        /// With its suffix.
        public var topic: String
        /// As it was sent; nil when it was not.
        public var pushType: String?
        /// 10 when none was sent.
        public var priority: Int
        /// The collapse identifier.
        public var collapseID: String?
        /// Exactly what was sent.
        public var payload: [UInt8]
        /// When the service took it, in milliseconds since 1970.
        public var acceptedAt: Int64
        /// Until when it may wait, in milliseconds since 1970; nil for one attempt only.
        public var expiresAt: Int64?
    }
}

typealias Device = APNsSimulator.Device
