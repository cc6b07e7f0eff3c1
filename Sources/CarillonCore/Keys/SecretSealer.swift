import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Seals secrets that the server must read again, so that a copy of the store's rows does not reveal them. Uses AES-256-GCM with
/// a key that is derived from a token key for each purpose, and binds the secret to the row's owner.
package struct SecretSealer: Sendable {
    /// The kind of the sealed secret, and the owner to which it is bound.
    package enum Purpose: String, Sendable {
        /// The signing secret of a watch and its channel token, bound to the channel.
        case watch = "carillon watch"
        /// The push credentials of an app, bound to the app.
        case gateway = "carillon gateway"
        /// The rules that authenticate the users of an app, bound to the app.
        case users = "carillon users"
        /// The signing secret of an app's approval hook, bound to the app.
        case approvalHook = "carillon veto"
        /// The position up to which a device received its inbox, bound to the device.
        case position = "carillon position"
    }

    private let current: UInt8
    private let keys: [UInt8: SymmetricKey]
    private let random: RandomSource

    /// - Parameter keys: The first key seals secrets. Each of the keys opens secrets.
    package init(keys: [TokenKey], for purpose: Purpose, random: RandomSource) {
        precondition(!keys.isEmpty, "a sealer needs a key")
        current = keys[0].id
        let derived = keys.map { key in
            let derived = HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: key.bytes), info: Array(purpose.rawValue.utf8),
                outputByteCount: 32)
            return (key.id, derived)
        }
        self.keys = Dictionary(derived, uniquingKeysWith: { first, _ in first })
        self.random = random
    }

    package func seal(_ plain: [UInt8], for owner: Int64) throws -> [UInt8] {
        guard let key = keys[current] else { preconditionFailure("the sealing key is one of the keys") }
        let box = try AES.GCM.seal(
            plain, using: key, nonce: AES.GCM.Nonce(data: random.bytes(12)),
            authenticating: owner.bigEndianBytes)
        return [current] + box.nonce + box.ciphertext + box.tag
    }

    /// Returns nil if the secret was sealed with a key that does not exist any more, or for another owner.
    package func open(_ sealed: [UInt8], for owner: Int64) -> [UInt8]? {
        guard let first = sealed.first, let key = keys[first],
            let box = try? AES.GCM.SealedBox(combined: sealed.dropFirst()),
            let plain = try? AES.GCM.open(box, using: key, authenticating: owner.bigEndianBytes)
        else { return nil }
        return Array(plain)
    }
}
