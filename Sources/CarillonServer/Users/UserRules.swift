package import CarillonBasics
package import CarillonCore
package import CarillonWire

/// The rules by which an app's users are identified: the keys that sign user tokens, and the required claims.
package struct UserRules: Sendable {
    package enum Source: Equatable, Sendable {
        /// A JWK set at an address of the app's owner.
        case address(CallAddress)
        /// A JWK set in the rules.
        case keys(JSONValue)
        case secrets([String])
    }

    package var source: Source
    package var algorithms: [UserAlgorithm]
    package var audience: String
    package var issuer: String?

    package static let mostSecrets = 10

    /// The name of the member in a device's description.
    package static let tokenMember = "userToken"

    // MARK: JSON form

    package static let memberNames: Set = ["jwksURL", "jwks", "secrets", "algorithms", "audience", "issuer"]

    /// - Parameters:
    ///   - body: An object without unknown members.
    ///   - audience: The audience, unless the body contains another.
    package init(_ body: JSONValue, audience: String) throws(Refusal) {
        let forms = ["jwksURL", "jwks", "secrets"].filter { body[$0] != nil }
        guard forms.count == 1 else {
            throw Refusal(.fieldMissing, "Set exactly one of \"jwksURL\", \"jwks\" and \"secrets\".")
        }
        source =
            switch (forms[0], body[forms[0]]) {
            case ("jwksURL", .string(let text)?): .address(try Self.address(text))
            case ("jwks", .object(let members)?): .keys(.object(members))
            case ("secrets", .array(let secrets)?): .secrets(try Self.secrets(secrets))
            default:
                throw Refusal(.fieldInvalid, "\"jwksURL\" must be a text, \"jwks\" an object, and \"secrets\" an array.")
            }
        algorithms = try Self.algorithms(body["algorithms"], isSecret: forms[0] == "secrets")
        self.audience = try Self.text("audience", body) ?? audience
        issuer = try Self.text("issuer", body)
    }

    private static func text(_ name: String, _ body: JSONValue) throws(Refusal) -> String? {
        switch body[name] {
        case nil, .null: return nil
        case .string(let text) where (1...1024).contains(text.utf8.count): return text
        default: throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a text of 1 to 1024 bytes.")
        }
    }

    private static func address(_ text: String) throws(Refusal) -> CallAddress {
        let address: CallAddress
        do throws(Refusal) {
            address = try CallAddress(text)
        } catch {
            throw Refusal(.userRulesInvalid, error.detail)
        }
        guard address.isSecure else { throw Refusal(.userRulesInvalid, "\"jwksURL\" must be an https URL.") }
        return address
    }

    private static func secrets(_ values: [JSONValue]) throws(Refusal) -> [String] {
        let texts = values.compactMap { if case .string(let text) = $0 { text } else { nil } }
        guard texts.count == values.count, (1...mostSecrets).contains(texts.count),
            texts.allSatisfy({ $0.utf8.count >= UserKey.shortestSecretBytes })
        else {
            throw Refusal(
                .userRulesInvalid,
                "\"secrets\" must have 1 to \(mostSecrets) texts of at least \(UserKey.shortestSecretBytes) bytes each.")
        }
        return texts
    }

    private static func algorithms(_ value: JSONValue?, isSecret: Bool) throws(Refusal) -> [UserAlgorithm] {
        let possible = isSecret ? [UserAlgorithm.hs256] : UserAlgorithm.published
        guard let value, value != .null else { return possible }
        let names = possible.map(\.rawValue).joined(separator: ", ")
        guard case .array(let values) = value, !values.isEmpty else {
            throw Refusal(.fieldInvalid, "\"algorithms\" must be an array with one or more of: \(names).")
        }
        var algorithms: [UserAlgorithm] = []
        for value in values {
            guard case .string(let name) = value, let algorithm = UserAlgorithm(rawValue: name),
                possible.contains(algorithm)
            else { throw Refusal(.userRulesInvalid, "With these keys \"algorithms\" must contain only: \(names).") }
            if !algorithms.contains(algorithm) { algorithms.append(algorithm) }
        }
        return algorithms
    }

    /// The rules in their stored form.
    package var json: JSONValue {
        let (name, keys): (String, JSONValue) =
            switch source {
            case .address(let address): ("jwksURL", .string(address.text))
            case .keys(let keys): ("jwks", keys)
            case .secrets(let secrets): ("secrets", .array(secrets.map(JSONValue.string)))
            }
        return [
            name: keys, "algorithms": .array(algorithms.map { .string($0.rawValue) }), "audience": .string(audience),
            "issuer": issuer.map(JSONValue.string),
        ]
    }

    /// Returns the keys that are known without a fetch.
    package func ownKeys() throws(Refusal) -> UserKeySet? {
        switch source {
        case .address: nil
        case .keys(let keys): try UserKeySet(jwks: keys.bytes)
        case .secrets(let secrets): UserKeySet(secrets.map { UserKey(secret: Array($0.utf8)) })
        }
    }
}
