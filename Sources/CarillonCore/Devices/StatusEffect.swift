/// The effect of an envelope that notifies a device of its status: the status counts as delivered.
package struct StatusEffect: FeatureEffect {
    package var device: DeviceSerial
    package var at: Timestamp
}

extension Effect {
    /// Marks the status that a device has since `at` as delivered.
    package static func statusNotified(_ device: DeviceSerial, at: Timestamp) -> Effect {
        Effect(StatusEffect(device: device, at: at))
    }
}
