/// A device is told of the status that it has since a moment.
package struct StatusEffect: FeatureEffect {
    package var device: DeviceSerial
    package var at: Timestamp
}

extension Effect {
    /// The device is told of the status that it has since a moment.
    package static func statusTold(_ device: DeviceSerial, at: Timestamp) -> Effect {
        Effect(StatusEffect(device: device, at: at))
    }
}
