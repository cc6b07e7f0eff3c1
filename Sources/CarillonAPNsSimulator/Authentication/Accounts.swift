import Crypto

/// The keys and apps of all teams.
struct Accounts: Sendable {
    struct Key: Sendable {
        var key: SigningKey
        var verifier: P256.Signing.PublicKey
        /// Whether the key was revoked. Its tokens are rejected.
        var isRevoked = false
    }

    private(set) var keys: [String: Key] = [:]
    private(set) var apps: [String: (app: App, revision: Int)] = [:]
    /// Incremented for each added app, so that a connection can detect the apps that were added after its first push.
    private(set) var revision = 0

    mutating func add(_ key: SigningKey) throws(SimulatorError) {
        let verifier = try SigningKey.readPublicKey(key.publicKey, "The public key of \(key.id)")
        keys[key.id] = Key(key: key, verifier: verifier)
    }

    mutating func revoke(_ id: String) -> Bool {
        guard keys[id] != nil else { return false }
        keys[id]?.isRevoked = true
        return true
    }

    mutating func add(_ app: App) {
        revision += 1
        apps[app.bundleID] = (app, revision)
    }
}
