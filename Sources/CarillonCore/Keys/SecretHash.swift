import CarillonWire
import Crypto

/// What is kept of a secret: its SHA-256. The secrets are 192 random bits or more, so a slow hash would add nothing.
package struct SecretHash: Equatable, Sendable {
    package let bytes: [UInt8]

    package init(of secret: some Sequence<UInt8>) {
        bytes = Array(SHA256.hash(data: Array(secret)))
    }

    /// A hash that was computed before.
    package init(stored bytes: [UInt8]) { self.bytes = bytes }

    /// Compares without telling by the time it takes how much was right.
    package func matches(_ other: SecretHash) -> Bool {
        guard bytes.count == other.bytes.count else { return false }
        return zip(bytes, other.bytes).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
