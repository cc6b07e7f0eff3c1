import CarillonBasics
import CarillonMessages
package import CarillonWire

/// A message in the form in which it is posted.
package struct EncryptedMessage: Sendable {
    package var body: [UInt8]
    package var coding: ContentCoding
}

extension PushSubscription {
    /// The keys of the subscription are not valid.
    package struct KeysInvalid: Error {}

    /// Encrypts a message like a sender, with a new key pair and salt.
    package func encrypt(_ content: [UInt8], with name: ContentCoding.Name) throws -> EncryptedMessage {
        guard name != .identity, let receiver = Base64URL.decode(keys.p256dh), let auth = Base64URL.decode(keys.auth),
            auth.count == ContentKey.authSecretBytes,
            let sealed = try? PrivateKeys(publicKey: receiver, authSecret: auth).encrypt(content, with: name)
        else { throw KeysInvalid() }
        return EncryptedMessage(body: sealed.body, coding: sealed.coding)
    }
}
