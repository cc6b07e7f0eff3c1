import CarillonWire

/// Stores the API keys of operators, senders and clients. Methods that write are atomic and durable, as ``Store`` describes.
package protocol KeyStore: Sendable {
    /// Stores a key. Returns false if the key's app does not exist.
    ///
    /// - Throws: ``StoreFault`` also if the id is taken. The stored key is not changed.
    func insertKey(_ key: AccessKey) async throws -> Bool
    /// Returns a key, revoked or not; nil if no key has the id.
    func key(_ id: KeyID) async throws -> AccessKey?
    /// Returns all keys, including revoked ones.
    func keys() async throws -> [AccessKey]
    /// Revokes a key, and removes the oldest revoked keys of its app beyond ``AccessKey/revokedKept``, in one transaction. Admin
    /// keys are counted together.
    ///
    /// - Returns: False if there is no such key, or it was revoked before. Of concurrent calls, one returns true.
    func revokeKey(_ id: KeyID, at now: Timestamp) async throws -> Bool
    /// Replaces the secret of a key. The present secret becomes the earlier one, and replaces the earlier one before
    /// (``AccessKey/EarlierSecret``). Concurrent calls take effect one after another.
    ///
    /// - Returns: False if there is no such key, or it was revoked.
    func rotateKey(
        _ id: KeyID, to hash: SecretHash, earlierValidUntil: Timestamp, servedUntil: Int64
    ) async throws -> Bool
}
