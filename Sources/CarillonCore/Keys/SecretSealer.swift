import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Keeps secrets that the server must read again from whoever sees the store's rows: AES-256-GCM under a key derived from a
/// token key for each purpose, bound to the row's owner.
package struct SecretSealer: Sendable {
    /// What is sealed, and to what it is bound.
    package enum Purpose: String, Sendable {
        /// The signing secret of a watch and the token that it is about, bound to the channel.
        case watch = "carillon watch"
        /// What an app shows its vendor's service, bound to the app.
        case gateway = "carillon gateway"
        /// How the users of an app are told, bound to the app.
        case users = "carillon users"
        /// The signing secret of an app's approval hook, bound to the app.
        case approvalHook = "carillon veto"
        /// How far a device received its inbox, bound to the device.
        case position = "carillon position"
    }

    private let current: UInt8
    private let keys: [UInt8: SymmetricKey]
    private let random: RandomSource

    /// The first key seals; all of them open.
    package init(keys: [TokenKey], for purpose: Purpose, random: RandomSource) {
        precondition(!keys.isEmpty, "A sealer needs a key.")
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
        guard let key = keys[current] else { preconditionFailure("The sealing key must be one of the keys.") }
        let box = try AES.GCM.seal(
            plain, using: key, nonce: AES.GCM.Nonce(data: random.bytes(12)),
            authenticating: owner.bigEndianBytes)
        return [current] + box.nonce + box.ciphertext + box.tag
    }

    /// Nil for what was sealed under a key that is not there any more, or for another owner.
    package func open(_ sealed: [UInt8], for owner: Int64) -> [UInt8]? {
        guard let first = sealed.first, let key = keys[first],
            let box = try? AES.GCM.SealedBox(combined: sealed.dropFirst()),
            let plain = try? AES.GCM.open(box, using: key, authenticating: owner.bigEndianBytes)
        else { return nil }
        return Array(plain)
    }
}
