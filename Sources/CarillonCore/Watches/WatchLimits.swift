import CarillonWire

/// The maximum numbers of watches.
package struct WatchLimits: Equatable, Sendable {
    package var perDevice: Int
    package var perApp: Int

    package init(perDevice: Int = Limits.watchesPerDevice, perApp: Int = Limits.watchesPerApp) {
        self.perDevice = perDevice
        self.perApp = perApp
    }
}
