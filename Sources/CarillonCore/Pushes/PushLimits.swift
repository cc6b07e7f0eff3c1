package enum PushLimits {
    /// The limit of alerts of a device that wait to be sent. For further messages the device is woken once.
    package static let alertsPerDevice = 20
    /// The limit of alerts of item subscriptions of a device that wait to be sent.
    package static let triggersPerDevice = 200
    package static let secondsBetweenAlerts: Int64 = 1
    /// The number of finished pushes that are kept of a device.
    package static let keptPerDevice = 256
    /// The number of payloads that are kept of an app in the test environment.
    package static let testPayloads = 100
}
