extension APNsSimulator {
    /// A broadcast channel of an app.
    public struct BroadcastChannel: Hashable, Sendable {
        /// What the service made up, in base64.
        public var id: String
        /// The app.
        public var bundleID: String
        /// The environment that it is in.
        public var environment: Environment
        /// Whether the newest message is stored: policy 1; with policy 0 none is.
        public var storesMessages: Bool
        /// The payloads that were sent to it and accepted, the newest last; a bounded number of them.
        public var sent: [[UInt8]]
    }
}

typealias BroadcastChannel = APNsSimulator.BroadcastChannel
