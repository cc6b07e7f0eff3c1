package import CarillonBasics
import CarillonWire
import Crypto
import _CryptoExtras

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A key that verifies tokens of users.
package struct UserKey: Sendable {
    private enum Material: Sendable {
        case es256(P256.Signing.PublicKey)
        case rs256(_RSA.Signing.PublicKey)
        case eddsa(Curve25519.Signing.PublicKey)
        case hs256(SymmetricKey)
    }

    package let id: String?
    package let algorithm: UserAlgorithm
    private let material: Material

    package static let shortestSecretBytes = 32

    /// - Parameter secret: At least ``shortestSecretBytes`` bytes (RFC 7518 section 3.2).
    package init(secret: [UInt8]) {
        id = nil
        algorithm = .hs256
        material = .hs256(SymmetricKey(data: secret))
    }

    /// The members of a JWK that are secret (RFC 7518 sections 6.2.2, 6.3.2 and 6.4, RFC 8037 section 2).
    private static let privateMembers: Set = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    /// Whether a JWK, or a JWK set itself, has a secret member.
    package static func isPrivate(_ jwk: JSONValue) -> Bool { !privateMembers.isDisjoint(with: jwk.names) }

    /// Parses a JWK (RFC 7517 section 4). Returns nil for a key of another kind or curve, a key for encryption, a private key, a
    /// member that is not canonical base64url, and an Ed25519 key that ``Ed25519Encoding`` does not accept.
    package init?(jwk: JSONValue) {
        func text(_ name: String) -> String? { if case .string(let text)? = jwk[name] { text } else { nil } }
        func bytes(_ name: String) -> [UInt8]? { text(name).flatMap { Base64URL.decode($0) } }
        guard !Self.isPrivate(jwk), text("use") ?? "sig" == "sig" else { return nil }
        if case .array(let uses)? = jwk["key_ops"], !uses.contains(.string("verify")) { return nil }
        switch (text("kty"), text("crv")) {
        case ("EC", "P-256"):
            guard let x = bytes("x"), let y = bytes("y"), x.count == 32, y.count == 32,
                let key = try? P256.Signing.PublicKey(rawRepresentation: x + y)
            else { return nil }
            (algorithm, material) = (.es256, .es256(key))
        case ("OKP", "Ed25519"):
            guard let x = bytes("x"), Ed25519Encoding.isAcceptable(x),
                let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x)
            else { return nil }
            (algorithm, material) = (.eddsa, .eddsa(key))
        case ("RSA", _):
            guard let n = bytes("n"), let e = bytes("e"), n.count <= Self.longestModulusBytes,
                let key = try? _RSA.Signing.PublicKey(n: n, e: e)
            else { return nil }
            (algorithm, material) = (.rs256, .rs256(key))
        default: return nil
        }
        if let named = text("alg"), named != algorithm.rawValue { return nil }
        id = text("kid")
    }

    /// 8192 bits. Verifying with a larger key is too expensive for a registration. BoringSSL limits the exponent.
    private static let longestModulusBytes = 1024

    package func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        switch material {
        case .es256(let key):
            guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
            return key.isValidSignature(signature, for: message)
        case .rs256(let key):
            return key.isValidSignature(
                _RSA.Signing.RSASignature(rawRepresentation: Data(signature)), for: SHA256.hash(data: message),
                padding: .insecurePKCS1v1_5)
        case .eddsa(let key):
            return key.isValidSignature(signature, for: message)
        case .hs256(let key):
            return HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: message, using: key)
        }
    }
}
