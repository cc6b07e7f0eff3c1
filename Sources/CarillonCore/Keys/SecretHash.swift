import CarillonWire
import Crypto

/// The SHA-256 of a secret, which is stored in its place. Secrets have at least 192 random bits, so a slow hash would add no
/// security.
package struct SecretHash: Equatable, Sendable {
    package let bytes: [UInt8]

    package init(of secret: some Sequence<UInt8>) {
        bytes = Array(SHA256.hash(data: Array(secret)))
    }

    /// - Parameter bytes: A hash that was computed before.
    package init(stored bytes: [UInt8]) { self.bytes = bytes }

    /// Compares the hashes in constant time, so that the duration does not reveal the number of equal bytes.
    package func matches(_ other: SecretHash) -> Bool {
        guard bytes.count == other.bytes.count else { return false }
        return zip(bytes, other.bytes).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
