/// The effect of a message that notifies a device of its status: the status counts as delivered.
package struct StatusEffect: FeatureEffect {
    package var device: DeviceSerial
    package var at: Timestamp
}

extension Effect {
    /// A device is notified of the status that it has since a time.
    package static func statusNotified(_ device: DeviceSerial, at: Timestamp) -> Effect {
        Effect(StatusEffect(device: device, at: at))
    }
}
