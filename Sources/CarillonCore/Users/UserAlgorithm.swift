/// The signature algorithms of user tokens (RFC 7518 section 3.1, RFC 8037). The accepted algorithms are configured. The `alg` of
/// a token is only compared with them.
package enum UserAlgorithm: String, CaseIterable, Sendable {
    case es256 = "ES256"
    case rs256 = "RS256"
    case eddsa = "EdDSA"
    /// For shared secrets only, because a published key could also be used to sign tokens.
    case hs256 = "HS256"

    package static let published: [UserAlgorithm] = [.es256, .rs256, .eddsa]
}
