import CarillonBasics
import CarillonMessages
package import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message as it is posted.
package struct EncryptedMessage: Sendable {
    package var body: [UInt8]
    package var coding: ContentCoding
}

extension PushSubscription {
    /// The keys of the subscription are no keys.
    package struct KeysInvalid: Error {}

    /// Encrypts a message as its sender does, with a new key pair and salt.
    package func encrypt(_ content: [UInt8], with name: ContentCoding.Name) throws -> EncryptedMessage {
        guard name != .identity, let receiver = Base64URL.decode(keys.p256dh), let auth = Base64URL.decode(keys.auth),
            auth.count == ContentKey.authSecretBytes,
            let point = try? P256.KeyAgreement.PublicKey(x963Representation: receiver)
        else { throw KeysInvalid() }
        let pair = P256.KeyAgreement.PrivateKey()
        let sender = Array(pair.publicKey.x963Representation)
        let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
        let key = ContentKey(
            name, secret: try pair.sharedSecretFromKeyAgreement(with: point), authSecret: auth, receiver: receiver,
            sender: sender, salt: salt)
        // One record, as RFC 8291 section 4 wants it: the record size is what the whole needs, or the usual.
        switch name {
        case .aesgcm:
            let record = try key.seal([0, 0] + content, number: 0)
            let size = max(4096, record.count - ContentKey.tagBytes + 1)
            return EncryptedMessage(
                body: record,
                coding: ContentCoding(
                    .aesgcm, encryption: "salt=\(Base64URL.encode(salt));rs=\(size)",
                    cryptoKey: "dh=\(Base64URL.encode(sender))"))
        case .aes128gcm, .identity:
            let record = try key.seal(content + [2], number: 0)
            let size = UInt32(max(4096, record.count))
            return EncryptedMessage(
                body: salt + size.bigEndianBytes + [UInt8(sender.count)] + sender + record,
                coding: ContentCoding(.aes128gcm))
        }
    }
}
