/// How tokens of users may be signed (RFC 7518 section 3.1, RFC 8037). Which of them counts is configured; what a token says of
/// itself is only compared with it.
package enum UserAlgorithm: String, CaseIterable, Sendable {
    case es256 = "ES256"
    case rs256 = "RS256"
    case eddsa = "EdDSA"
    /// With shared secrets only: whoever could verify with a published key could sign with it, too.
    case hs256 = "HS256"

    package static let published: [UserAlgorithm] = [.es256, .rs256, .eddsa]
}
