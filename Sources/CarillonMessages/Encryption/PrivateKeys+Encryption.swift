import CarillonBasics
package import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PrivateKeys {
    /// Encrypts a message as a sender does, with a new key pair and salt, in one record (RFC 8291 section 4). The record size
    /// is 4096, or larger if the message needs more.
    ///
    /// - Throws: An error if the keys are not valid.
    package func encrypt(
        _ content: [UInt8], with name: ContentCoding.Name
    ) throws -> (body: [UInt8], coding: ContentCoding) {
        let point = try P256.KeyAgreement.PublicKey(x963Representation: publicKey)
        let pair = P256.KeyAgreement.PrivateKey()
        let sender = Array(pair.publicKey.x963Representation)
        let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
        let key = ContentKey(
            name, secret: try pair.sharedSecretFromKeyAgreement(with: point), authSecret: authSecret, receiver: publicKey,
            sender: sender, salt: salt)
        switch name {
        case .aesgcm:
            let record = try key.seal([0, 0] + content, number: 0)
            let size = max(4096, record.count - ContentKey.tagBytes + 1)
            let coding = ContentCoding(
                .aesgcm, encryption: "salt=\(Base64URL.encode(salt));rs=\(size)",
                cryptoKey: "dh=\(Base64URL.encode(sender))")
            return (record, coding)
        case .aes128gcm, .identity:
            let record = try key.seal(content + [2], number: 0)
            let size = UInt32(max(4096, record.count))
            return (salt + size.bigEndianBytes + [UInt8(sender.count)] + sender + record, ContentCoding(.aes128gcm))
        }
    }
}
