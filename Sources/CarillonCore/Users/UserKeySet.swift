import CarillonBasics
package import CarillonWire

/// The keys of one app, in their original order.
package struct UserKeySet: Sendable {
    package let keys: [UserKey]

    package static let mostKeys = 100
    package static let longestBytes = 65_536
    /// The maximum number of keys that are tried for a token without a key id.
    static let mostTried = 10

    package init(_ keys: [UserKey]) { self.keys = keys }

    /// Parses a JWK set (RFC 7517 section 5). Keys that cannot be used here are left out, because the set may have other uses.
    ///
    /// - Throws: ``Refusal`` with the reason: the set contains a private key, or no key is left.
    package init(jwks text: [UInt8]) throws(Refusal) {
        guard text.count <= Self.longestBytes else {
            throw Self.invalid("The key set must have at most \(Self.longestBytes) bytes.")
        }
        guard let value = JSONValue(parsing: text), case .array(let all)? = value["keys"] else {
            if let number = NumberOutOfRange(in: text) { throw Self.invalid("The key set is not valid: \(number.clause).") }
            throw Self.invalid("The key set must be a JSON object with an array \"keys\" (RFC 7517 section 5).")
        }
        guard all.count <= Self.mostKeys else { throw Self.invalid("The key set must have at most \(Self.mostKeys) keys.") }
        guard !UserKey.isPrivate(value), !all.contains(where: UserKey.isPrivate) else {
            throw Self.invalid("The key set contains a private key; publish only the public keys.")
        }
        keys = all.compactMap(UserKey.init(jwk:))
        guard !keys.isEmpty else {
            throw Self.invalid("The key set has no public key for ES256, RS256 of 2048 bits or more, or EdDSA (Ed25519).")
        }
    }

    /// Returns the keys of the algorithm that can have signed a token: the keys with its key id; if no key has this id, the keys
    /// without a key id. For a token without a key id, all keys count. At most ``mostTried`` keys are returned.
    func candidates(for algorithm: UserAlgorithm, id: String?) -> [UserKey] {
        let fitting = keys.lazy.filter { $0.algorithm == algorithm }
        guard let id else { return Array(fitting.prefix(Self.mostTried)) }
        let named = fitting.filter { $0.id == id }
        return Array((named.isEmpty ? fitting.filter { $0.id == nil } : named).prefix(Self.mostTried))
    }

    private static func invalid(_ what: String) -> Refusal { Refusal(.userRulesInvalid, what) }
}
