package import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The keys that decrypt the messages of a channel: a key pair on P-256, and a secret that the device shares only with the
/// channel's senders (RFC 8291 section 2).
package struct SubscriptionKeys: Hashable, Sendable {
    package let privateKey: [UInt8]
    package let authSecret: [UInt8]
    /// An uncompressed point, 65 bytes.
    package let publicKey: [UInt8]

    /// Generates new keys.
    package init() {
        let key = P256.KeyAgreement.PrivateKey()
        privateKey = Array(key.rawRepresentation)
        publicKey = Array(key.publicKey.x963Representation)
        authSecret = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
    }

    /// Restores stored keys. Returns nil if the bytes are not valid keys.
    package init?(privateKey: [UInt8], authSecret: [UInt8]) {
        guard authSecret.count == ContentKey.authSecretBytes,
            let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: privateKey)
        else { return nil }
        self.privateKey = privateKey
        self.authSecret = authSecret
        publicKey = Array(key.publicKey.x963Representation)
    }

    /// Returns the key of a message that was encrypted with the sender's key pair and the salt, or nil if the sender's key is
    /// not valid.
    package func contentKey(_ name: ContentCoding.Name, sender: [UInt8], salt: [UInt8]) -> ContentKey? {
        guard let point = try? P256.KeyAgreement.PublicKey(x963Representation: sender),
            let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: privateKey),
            let secret = try? key.sharedSecretFromKeyAgreement(with: point)
        else { return nil }
        return ContentKey(
            name, secret: secret, authSecret: authSecret, receiver: publicKey, sender: sender, salt: salt)
    }
}
