package import CarillonWire

/// Makes API keys, and checks their roles.
package struct KeyAuthority: Sendable {
    private let keys: any KeyStore
    private let time: TimeSource
    private let served: ServedTime
    private let random: RandomSource

    package init(keys: any KeyStore, time: TimeSource, served: ServedTime, random: RandomSource) {
        self.keys = keys
        self.time = time
        self.served = served
        self.random = random
    }

    /// Makes a new key with its secret. The secret cannot be read again later.
    ///
    /// - Parameter name: At most ``Limits/keyNameBytes`` bytes.
    package func createKey(role: KeyRole, app: AppID?, name: String?) async throws -> (key: AccessKey, secret: KeySecret) {
        switch (role, app) {
        case (.admin, .some):
            throw Refusal(.fieldInvalid, "An admin key is for all apps; leave \"app\" out.")
        case (.sender, nil), (.client, nil):
            throw Refusal(.fieldMissing, "A \(role.rawValue) key belongs to one app; say which in \"app\".")
        default:
            break
        }
        if let name, name.utf8.count > Limits.keyNameBytes {
            throw Refusal(
                .fieldInvalid,
                "The \"name\" of a key has at most \(Limits.keyNameBytes) bytes; this one has \(name.utf8.count).")
        }
        let secret = KeySecret(role: role, id: KeyID(random.next()), random: random)
        let key = AccessKey(
            id: secret.id, role: role, app: app, name: name, secretHash: secret.hash, createdAt: time.now())
        guard try await keys.insertKey(key) else {
            throw Refusal(.appUnknown, "There is no app \"\(app?.text ?? "")\"; create it first.")
        }
        return (key, secret)
    }

    package func list() async throws -> [AccessKey] { try await keys.keys() }

    package func revoke(_ id: KeyID) async throws {
        guard try await keys.revokeKey(id, at: time.now()) else { throw unknown(id) }
    }

    /// Revokes the key if it is not revoked yet.
    ///
    /// - Returns: The key as it was before the call. The key is read first because a revocation removes the oldest revoked keys.
    package func ensureRevoked(_ id: KeyID) async throws -> AccessKey {
        guard let key = try await keys.key(id) else { throw unknown(id) }
        _ = try await keys.revokeKey(id, at: time.now())
        return key
    }

    package func rotate(_ id: KeyID, overlapSeconds: Int) async throws -> (key: AccessKey, secret: KeySecret) {
        guard let key = try await keys.key(id), key.revokedAt == nil else { throw unknown(id) }
        let secret = KeySecret(role: key.role, id: id, random: random)
        let overlap = Int64(overlapSeconds)
        let isRotated = try await keys.rotateKey(
            id, to: secret.hash, earlierValidUntil: time.now().adding(seconds: overlap),
            servedUntil: served.seconds + overlap)
        guard isRotated else { throw unknown(id) }
        return (key, secret)
    }

    /// Returns the key of a bearer secret if its role is allowed.
    package func authorize(bearer: String?, as roles: Set<KeyRole>) async throws -> AccessKey {
        let wanted = roles.map(\.rawValue).sorted().joined(separator: " or ")
        guard let bearer else {
            throw Refusal(.credentialMissing, "Send a key of role \(wanted) as \"Authorization: Bearer …\".")
        }
        guard let secret = KeySecret(parsing: bearer), let key = try await keys.key(secret.id),
            key.accepts(secret.hash, at: time.now(), served: served.seconds)
        else {
            throw Refusal(.credentialInvalid, "The key is unknown, revoked, or mistyped; a key of role \(wanted) is wanted.")
        }
        guard roles.contains(key.role) else {
            throw Refusal(.roleForbidden, "A key of role \(key.role.rawValue) may not do this; \(wanted) may.")
        }
        return key
    }

    private func unknown(_ id: KeyID) -> Refusal {
        Refusal(.keyUnknown, "There is no key \(id) that is not revoked.")
    }
}
