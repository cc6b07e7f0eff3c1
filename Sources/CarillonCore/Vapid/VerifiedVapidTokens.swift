package import CarillonWire
import Crypto
import Synchronization

/// The VAPID tokens that were verified, with their expiry. Each token is verified once, because a sender uses one token for hours,
/// and the verification of its signature is most of the cost of accepting a message.
package final class VerifiedVapidTokens: Sendable {
    /// The addresses of the endpoints. A token must name the origin of one of them.
    private let addresses: PublicURLs
    /// The expiry of valid tokens, by a hash of token and key.
    private let verified: Mutex<LRUCache<SHA256Digest, Double>>

    package init(addresses: PublicURLs, capacity: Int = 4096) {
        self.addresses = addresses
        verified = Mutex(LRUCache(capacity: capacity))
    }

    /// Verifies a token, unless it was verified before.
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
        // The key is first because its length is constant.
        hash.update(data: key)
        var token = token
        token.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        return hash.finalize()
    }
}
