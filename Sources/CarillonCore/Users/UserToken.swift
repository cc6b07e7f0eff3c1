import CarillonBasics
package import CarillonWire

/// A JWT in which an app's backend asserts the user of a device (RFC 7519). Parsing is strict, and the token's own key members
/// (`jku`, `jwk`, `x5u`, `x5c`) are ignored.
package struct UserToken: Sendable {
    private let algorithm: UserAlgorithm
    private let keyID: String?
    private let claims: JSONValue
    private let message: [UInt8]
    private let signature: [UInt8]

    package static let longestBytes = 8192
    /// The accepted difference of clocks.
    package static let leewaySeconds: Int64 = 30

    /// - Parameter allowed: The accepted algorithms.
    package init(_ text: String, allowed: [UserAlgorithm]) throws(Refusal) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.longestBytes, parts.count == 3, let header = Self.object(parts[0]),
            let claims = Self.object(parts[1]), let signature = Base64URL.decode(parts[2])
        else { throw Self.invalid("it is no signed JWT of at most \(Self.longestBytes) bytes") }
        guard case .string(let name)? = header["alg"], let algorithm = UserAlgorithm(rawValue: name),
            allowed.contains(algorithm)
        else {
            throw Self.invalid("its alg must be \(allowed.map(\.rawValue).joined(separator: " or "))")
        }
        // No critical extension is supported (RFC 7515 section 4.1.11).
        guard header["crit"] == nil else { throw Self.invalid("it has a crit header") }
        switch header["kid"] {
        case nil: keyID = nil
        case .string(let id): keyID = id
        default: throw Self.invalid("its kid is no text")
        }
        (self.algorithm, self.claims, self.signature) = (algorithm, claims, signature)
        message = Array(text.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
    }

    private static func object(_ part: Substring) -> JSONValue? {
        guard let bytes = Base64URL.decode(part), let value = JSONValue(parsing: bytes), case .object = value else {
            return nil
        }
        return value
    }

    /// Whether one of the keys can have signed the token.
    package func hasCandidate(in keys: UserKeySet) -> Bool { !keys.candidates(for: algorithm, id: keyID).isEmpty }

    /// Whether the token has expired. A token without a numeric `exp` counts as expired.
    package func hasExpired(at now: Timestamp) -> Bool {
        guard let expiry = Self.number(claims["exp"]) else { return true }
        return expiry <= Double(now.milliseconds) / 1000 - Double(Self.leewaySeconds)
    }

    /// Returns the user if one of the keys signed the token, the token has not expired, and its audience and issuer are right.
    package func verify(
        with keys: UserKeySet, audience: String, issuer: String?, at now: Timestamp
    ) throws(Refusal) -> UserID {
        let candidates = keys.candidates(for: algorithm, id: keyID)
        guard !candidates.isEmpty else { throw Self.invalid("there is no \(algorithm.rawValue) key with its kid") }
        guard candidates.contains(where: { $0.verifies(signature, of: message) }) else {
            throw Self.invalid("its signature does not fit")
        }
        guard Self.number(claims["exp"]) != nil else { throw Self.invalid("it has no exp") }
        guard !hasExpired(at: now) else { throw Self.invalid("it has expired") }
        let seconds = Double(now.milliseconds) / 1000
        if let start = claims["nbf"] {
            guard let start = Self.number(start), start <= seconds + Double(Self.leewaySeconds) else {
                throw Self.invalid("it is not valid yet")
            }
        }
        guard isMeantFor(audience) else { throw Self.invalid("its aud must be \"\(audience)\"") }
        if let issuer, claims["iss"] != .string(issuer) { throw Self.invalid("its iss must be \"\(issuer)\"") }
        guard case .string(let subject)? = claims["sub"], let user = UserID(subject) else {
            throw Self.invalid("its sub must have 1 to \(UserID.longestBytes) bytes, without control characters")
        }
        return user
    }

    private func isMeantFor(_ audience: String) -> Bool {
        switch claims["aud"] {
        case .string(let one): one == audience
        case .array(let several): several.contains(.string(audience))
        default: false
        }
    }

    private static func number(_ value: JSONValue?) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }

    private static func invalid(_ what: String) -> Refusal {
        Refusal(.userTokenInvalid, "The user token is refused: \(what).")
    }
}
