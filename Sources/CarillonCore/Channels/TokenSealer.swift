import CarillonBasics
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Makes and opens channel tokens. A token contains a key id, a device and a channel, sealed with AES-256-GCM and a random nonce.
///
///     key id ⊕ first byte of the nonce │ nonce, 12 bytes │ device and channel, 16 bytes │ tag, 16 bytes
///
/// A token has 60 characters of base64url. The key id is masked with the nonce, so that two tokens have no visible part in
/// common. An invalid token is recognized without a read from the store.
package struct TokenSealer: Sendable {
    package struct Contents: Equatable, Sendable {
        package var device: DeviceSerial
        package var channel: ChannelSerial
        package init(device: DeviceSerial, channel: ChannelSerial) {
            self.device = device
            self.channel = channel
        }
    }

    package static let tokenCharacters = 60

    private let current: UInt8
    private let keys: [UInt8: SymmetricKey]
    private let random: RandomSource

    /// - Parameter keys: The first key seals tokens. Each of the keys opens tokens.
    package init(keys: [TokenKey], random: RandomSource) {
        precondition(!keys.isEmpty, "a sealer needs a key")
        current = keys[0].id
        self.keys = Dictionary(keys.map { ($0.id, SymmetricKey(data: $0.bytes)) }, uniquingKeysWith: { first, _ in first })
        self.random = random
    }

    package func seal(_ contents: Contents) throws -> String {
        guard let key = keys[current] else { preconditionFailure("the sealing key is one of the keys") }
        let nonce = random.bytes(12)
        let plain = contents.device.rawValue.bigEndianBytes + contents.channel.rawValue.bigEndianBytes
        let box = try AES.GCM.seal(plain, using: key, nonce: AES.GCM.Nonce(data: nonce))
        return Base64URL.encode([current ^ nonce[0]] + nonce + box.ciphertext + box.tag)
    }

    /// Returns the contents of a token; nil if this server did not seal it.
    package func open(_ token: some StringProtocol) -> Contents? {
        guard token.utf8.count == Self.tokenCharacters, let bytes = Base64URL.decode(token),
            let key = keys[bytes[0] ^ bytes[1]],
            let box = try? AES.GCM.SealedBox(combined: bytes.dropFirst()),
            let plain = try? AES.GCM.open(box, using: key), plain.count == 16
        else { return nil }
        return plain.withUnsafeBytes { plain in
            func number(at offset: Int) -> Int64 {
                Int64(bigEndian: plain.loadUnaligned(fromByteOffset: offset, as: Int64.self))
            }
            return Contents(device: DeviceSerial(number(at: 0)), channel: ChannelSerial(number(at: 8)))
        }
    }
}
