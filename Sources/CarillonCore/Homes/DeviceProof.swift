/// The proof that a connection belongs to a device. The home of the device checks it.
package enum DeviceProof: Sendable {
    /// The hash of the credential that a registered device has.
    case credential(SecretHash)
    /// The hash of the user agent identifier of a device without registration.
    case userAgent(SecretHash)

    package func isValid(for device: Device) -> Bool {
        switch self {
        case .credential(let hash), .userAgent(let hash): device.credentialHash.matches(hash)
        }
    }
}
