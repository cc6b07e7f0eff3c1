package import CarillonWire

/// By what a device is found.
package enum DeviceName: Sendable {
    /// The identifier of a device and the hash of its credential. A device that has another credential is not found.
    case id(DeviceID, credential: SecretHash)
    case credential(SecretHash)
}
