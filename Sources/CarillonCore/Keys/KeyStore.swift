import CarillonWire

package protocol KeyStore: Sendable {
    /// Answers false when the key's app does not exist.
    func insertKey(_ key: AccessKey) async throws -> Bool
    func key(_ id: KeyID) async throws -> AccessKey?
    func keys() async throws -> [AccessKey]
    /// Answers false when there is no such key, or it was revoked before. Of revoked keys ``AccessKey/revokedKept`` are kept.
    func revokeKey(_ id: KeyID, at now: Timestamp) async throws -> Bool
    /// Replaces the secret, and keeps the present one valid until a moment by both clocks (``AccessKey/EarlierSecret``). Answers
    /// false as ``revokeKey(_:at:)`` does.
    func rotateKey(
        _ id: KeyID, to hash: SecretHash, earlierValidUntil: Timestamp, servedUntil: Int64
    ) async throws -> Bool
}
