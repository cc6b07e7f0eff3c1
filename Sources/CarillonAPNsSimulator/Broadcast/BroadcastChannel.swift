extension APNsSimulator {
    /// A broadcast channel of an app.
    public struct BroadcastChannel: Hashable, Sendable {
        /// The channel's ID, which the simulator generates, in base64.
        public var id: String
        /// The bundle identifier of the app.
        public var bundleID: String
        /// The environment of the channel.
        public var environment: Environment
        /// Whether the newest message is stored (policy 1). With policy 0 no message is stored.
        public var storesMessages: Bool
        /// The newest accepted payloads, the newest last; up to 100.
        public var sent: [[UInt8]]
    }
}

typealias BroadcastChannel = APNsSimulator.BroadcastChannel
