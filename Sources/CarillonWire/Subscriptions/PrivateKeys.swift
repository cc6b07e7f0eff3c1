package import CarillonBasics
import Crypto

/// The public keys of the receiver of a private notification, in the form of a browser's Web Push subscription (RFC 8291 section
/// 2).
package struct PrivateKeys: Equatable, Sendable {
    /// An uncompressed point on P-256.
    package let publicKey: [UInt8]
    package let authSecret: [UInt8]

    package init(publicKey: [UInt8], authSecret: [UInt8]) {
        self.publicKey = publicKey
        self.authSecret = authSecret
    }

    /// Returns nil for a value that cannot be such keys.
    package init?(_ json: JSONValue?) {
        guard case .object(let members)? = json, members.count == 2, case .string(let point)? = json?["p256dh"],
            case .string(let auth)? = json?["auth"], let publicKey = Base64URL.decode(point),
            let authSecret = Base64URL.decode(auth), authSecret.count == 16,
            (try? P256.KeyAgreement.PublicKey(x963Representation: publicKey)) != nil
        else { return nil }
        self.init(publicKey: publicKey, authSecret: authSecret)
    }

    package var json: JSONValue {
        ["auth": .string(Base64URL.encode(authSecret)), "p256dh": .string(Base64URL.encode(publicKey))]
    }
}
