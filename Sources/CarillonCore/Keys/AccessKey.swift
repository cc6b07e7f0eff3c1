import CarillonBasics
package import CarillonWire

/// A bearer secret with a role, as the store has it: without the secret.
package struct AccessKey: Equatable, Sendable {
    package var id: KeyID
    package var role: KeyRole
    /// The app of a `sender` or `client` key; nil for `admin`.
    package var app: AppID?
    package var name: String?
    package var secretHash: SecretHash
    /// The secret before the last rotation, with its expiry. The secret expires when it has expired by both clocks.
    package var earlier: EarlierSecret?
    package var createdAt: Timestamp
    package var revokedAt: Timestamp?

    package struct EarlierSecret: Equatable, Sendable {
        package var hash: SecretHash
        package var validUntil: Timestamp
        /// The expiry in seconds for which the server was in service.
        package var servedUntil: Int64
        package init(hash: SecretHash, validUntil: Timestamp, servedUntil: Int64) {
            self.hash = hash
            self.validUntil = validUntil
            self.servedUntil = servedUntil
        }
    }

    /// The number of revoked keys of an app, and of revoked admin keys, that are kept. Beyond it, the oldest are removed.
    package static let revokedKept = 100

    package init(
        id: KeyID, role: KeyRole, app: AppID?, name: String?, secretHash: SecretHash, earlier: EarlierSecret? = nil,
        createdAt: Timestamp, revokedAt: Timestamp? = nil
    ) {
        self.id = id
        self.role = role
        self.app = app
        self.name = name
        self.secretHash = secretHash
        self.earlier = earlier
        self.createdAt = createdAt
        self.revokedAt = revokedAt
    }

    /// Whether a secret is valid for this key now.
    ///
    /// - Parameter served: The number of seconds for which the server was in service.
    package func accepts(_ hash: SecretHash, at now: Timestamp, served: Int64) -> Bool {
        guard revokedAt == nil else { return false }
        if secretHash.matches(hash) { return true }
        guard let earlier, now < earlier.validUntil || served < earlier.servedUntil else { return false }
        return earlier.hash.matches(hash)
    }
}

/// The public name of a key: 16 hexadecimal digits.
package struct KeyID: Hashable, Sendable {
    package var value: UInt64
    package init(_ value: UInt64) { self.value = value }

    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 16, let value = UInt64(text, radix: 16) else { return nil }
        self.value = value
    }
}

extension KeyID: CustomStringConvertible {
    package var description: String { Hexadecimal.encode(value.bigEndianBytes) }
}
