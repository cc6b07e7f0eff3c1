import CarillonBasics
package import CarillonWire
import Crypto

/// The secret that a device receives at registration: `<device id>.<192 bits>`. The bits are random, or derived from the secret
/// of the registration.
package struct DeviceCredential: Sendable {
    package let device: DeviceID
    package let text: String

    package var hash: SecretHash { SecretHash(of: text.utf8) }

    package static let secretByteCount = 24

    package init(device: DeviceID, secret: [UInt8]) {
        self.device = device
        text = "\(device).\(Base64URL.encode(secret))"
    }

    /// Makes the credential of a registration with a secret. Each repetition makes the same credential, so that every answer to
    /// the registration stays valid.
    package init(device: DeviceID, registration secret: String) {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("carillon device credential \(device)".utf8), using: SymmetricKey(data: Array(secret.utf8)))
        self.init(device: device, secret: Array(code.prefix(Self.secretByteCount)))
    }

    /// The secret part of a credential. The credential is complete when the device's identifier is known.
    package enum Secret: Sendable {
        case random([UInt8])
        /// The secret of the registration.
        case ofRegistration(String)
    }

    package init(device: DeviceID, of secret: Secret) {
        switch secret {
        case .random(let bytes): self.init(device: device, secret: bytes)
        case .ofRegistration(let secret): self.init(device: device, registration: secret)
        }
    }

    package init?(parsing text: some StringProtocol) {
        guard let dot = text.utf8.firstIndex(of: UInt8(ascii: ".")), text.utf8[dot...].count == 33,
            let device = DeviceID(text[..<dot])
        else { return nil }
        self.device = device
        self.text = String(text)
    }
}

/// The credential of a device that is stored, or of a device that registers again.
package enum NewCredential: Sendable {
    case made(of: DeviceCredential.Secret)
    /// A credential that is the same for every identifier.
    case fixed(SecretHash)

    func hash(for device: DeviceID) -> SecretHash {
        switch self {
        case .made(let secret): DeviceCredential(device: device, of: secret).hash
        case .fixed(let hash): hash
        }
    }
}
