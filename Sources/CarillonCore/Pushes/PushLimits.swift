package enum PushLimits {
    /// Alerts of a device that wait to be sent; for what is beyond it the device is woken once.
    package static let alertsPerDevice = 20
    /// The same of alerts and subscriptions that fired, where it is one of these.
    package static let triggersPerDevice = 200
    package static let secondsBetweenAlerts: Int64 = 1
    /// Pushes that are remembered of a device once they are over.
    package static let keptPerDevice = 256
    /// Payloads that are remembered of an app in the test environment.
    package static let testPayloads = 100
}
