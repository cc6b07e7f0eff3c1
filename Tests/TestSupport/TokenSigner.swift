import CarillonBasics
package import Crypto
package import _CryptoExtras

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Signs tokens as an app's server does, and publishes the keys for it.
package enum TokenSigner: Sendable {
    case es256(P256.Signing.PrivateKey)
    case rs256(_RSA.Signing.PrivateKey)
    case eddsa(Curve25519.Signing.PrivateKey)
    case hs256(String)

    package var algorithm: String {
        switch self {
        case .es256: "ES256"
        case .rs256: "RS256"
        case .eddsa: "EdDSA"
        case .hs256: "HS256"
        }
    }

    /// - Parameters:
    ///   - header: More of the header; a member `alg` takes the place of the true one.
    ///   - claims: JSON.
    package func token(_ claims: String, header: [String: String] = [:]) throws -> String {
        var members = ["alg": "\"\(algorithm)\""]
        for (name, value) in header { members[name] = value }
        let head = "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
        let message = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return message + "." + Base64URL.encode(try signature(of: Array(message.utf8)))
    }

    private func signature(of message: [UInt8]) throws -> [UInt8] {
        switch self {
        case .es256(let key): Array(try key.signature(for: message).rawRepresentation)
        case .rs256(let key):
            Array(
                try key.signature(for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5).rawRepresentation)
        case .eddsa(let key): Array(try key.signature(for: message))
        case .hs256(let secret):
            Array(HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: Array(secret.utf8))))
        }
    }

    /// As a JWK; empty of a secret.
    package func jwk(_ id: String? = nil, _ more: String = "") throws -> String {
        let name = (id.map { ",\"kid\":\"\($0)\"" } ?? "") + more
        switch self {
        case .es256(let key):
            let point = key.publicKey.rawRepresentation
            let (x, y) = (Base64URL.encode(Array(point.prefix(32))), Base64URL.encode(Array(point.suffix(32))))
            return #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"\#(name)}"#
        case .rs256(let key):
            let parts = try key.publicKey.getKeyPrimitives()
            let (n, e) = (Base64URL.encode(Array(parts.modulus)), Base64URL.encode(Array(parts.publicExponent)))
            return #"{"kty":"RSA","n":"\#(n)","e":"\#(e)"\#(name)}"#
        case .eddsa(let key):
            let x = Base64URL.encode(Array(key.publicKey.rawRepresentation))
            return #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)"\#(name)}"#
        case .hs256: return ""
        }
    }
}
