/// The maximum number of waiting callbacks. Beyond it, the oldest are dropped for the newest.
package struct CallbackLimits: Equatable, Sendable {
    package var perApp: Int
    /// The limit of one app for one host and port.
    package var perPeer: Int

    package init(perApp: Int = 100_000, perPeer: Int = 10_000) {
        self.perApp = perApp
        self.perPeer = perPeer
    }
}
