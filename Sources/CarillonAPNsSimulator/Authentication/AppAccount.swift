extension APNsSimulator {
    /// An app that is registered in a developer account.
    public struct App: Hashable, Sendable {
        /// The bundle identifier.
        public var bundleID: String
        /// The team that owns the app.
        public var teamID: String
        /// Whether the app has the broadcast capability.
        public var hasBroadcast: Bool

        /// Makes an app that can be added to a simulator.
        public init(bundleID: String, teamID: String, hasBroadcast: Bool = true) {
            self.bundleID = bundleID
            self.teamID = teamID
            self.hasBroadcast = hasBroadcast
        }
    }
}

typealias App = APNsSimulator.App
