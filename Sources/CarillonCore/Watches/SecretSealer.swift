import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Keeps the secrets of watches from whoever sees the store's rows: AES-256-GCM under a key derived from a token key,
/// bound to the channel.
///
/// A signing secret cannot be hashed, as the server signs with it. The token is kept so that a call can say which token
/// it is about, and rows hold no token in clear.
package struct SecretSealer: Sendable {
    private let current: UInt8
    private let keys: [UInt8: SymmetricKey]
    private let random: RandomSource

    /// The first key seals; all of them open.
    package init(keys: [TokenKey], random: RandomSource) {
        precondition(!keys.isEmpty, "a sealer needs a key")
        current = keys[0].id
        let derived = keys.map { key in
            let derived = HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: key.bytes), info: Array("carillon watch".utf8), outputByteCount: 32)
            return (key.id, derived)
        }
        self.keys = Dictionary(derived, uniquingKeysWith: { first, _ in first })
        self.random = random
    }

    package func seal(_ plain: [UInt8], for channel: ChannelSerial) throws -> [UInt8] {
        guard let key = keys[current] else { preconditionFailure("the sealing key is one of the keys") }
        let box = try AES.GCM.seal(
            plain, using: key, nonce: AES.GCM.Nonce(data: random.bytes(12)),
            authenticating: channel.rawValue.bigEndianBytes)
        return [current] + box.nonce + box.ciphertext + box.tag
    }

    /// Nil for what was sealed under a key that is not there any more, or for another channel.
    package func open(_ sealed: [UInt8], for channel: ChannelSerial) -> [UInt8]? {
        guard let first = sealed.first, let key = keys[first],
            let box = try? AES.GCM.SealedBox(combined: sealed.dropFirst()),
            let plain = try? AES.GCM.open(box, using: key, authenticating: channel.rawValue.bigEndianBytes)
        else { return nil }
        return Array(plain)
    }
}
