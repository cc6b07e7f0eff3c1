package import CarillonWire

/// The values that identify a device in a request.
package enum DeviceName: Sendable {
    /// The identifier of a device and the hash of its credential. A device that has another credential is not found.
    case id(DeviceID, credential: SecretHash)
    case credential(SecretHash)
}
