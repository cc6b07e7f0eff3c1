package import CarillonWire
import Crypto
import Synchronization

/// Verifies VAPID tokens, each once: a sender signs one for hours of messages, and the signature is most of what it costs to
/// take a message.
package final class VapidVerifier: Sendable {
    /// The addresses of the endpoints, whose origin a token must name.
    private let addresses: OwnAddresses
    /// When those that are good expire, by a hash of token and key.
    private let verified: Mutex<LRUCache<SHA256Digest, Double>>

    package init(addresses: OwnAddresses, capacity: Int = 4096) {
        self.addresses = addresses
        verified = Mutex(LRUCache(capacity: capacity))
    }

    package func verify(_ credentials: VapidCredentials, at now: Timestamp) throws(Refusal) {
        let digest = credentials.digest
        if let expiry = verified.withLock({ $0[digest] }) {
            return try VapidCredentials.check(expiry: expiry, at: now)
        }
        let expiry = try credentials.verify(for: addresses, at: now)
        verified.withLock { $0[digest] = expiry }
    }

    package var rememberedCount: Int { verified.withLock { $0.count } }
}

extension VapidCredentials {
    fileprivate var digest: SHA256Digest {
        var hash = SHA256()
        // The key first: its length is always the same.
        hash.update(data: key)
        var token = token
        token.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        return hash.finalize()
    }
}
