import CarillonBasics
import Crypto
import Foundation

/// A received provider token: a JSON Web Token (RFC 7519) of a fixed form.
struct ProviderToken {
    var keyID: String
    var teamID: String
    var issuedAt: Timestamp
    private var signed: Data
    private var signature: Data

    private struct Header: Decodable {
        var alg: String
        var kid: String
    }

    private struct Claims: Decodable {
        var iss: String
        /// A number. A string of digits is rejected, as at the real service.
        var iat: Double
    }

    /// Returns nil for text that is not an ES256 token with a key ID of ten characters, a team and a numeric time.
    init?(authorization: String) {
        let scheme = "bearer "
        guard authorization.prefix(scheme.count).lowercased() == scheme else { return nil }
        let parts = authorization.dropFirst(scheme.count).split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.decoded(parts[0]), let claims = Self.decoded(parts[1]),
            let signature = Self.decoded(parts[2]),
            let header = try? JSONDecoder().decode(Header.self, from: header),
            let claims = try? JSONDecoder().decode(Claims.self, from: claims),
            header.alg == "ES256", header.kid.utf8.count == 10, claims.iat.magnitude < 1e12
        else { return nil }
        keyID = header.kid
        teamID = claims.iss
        issuedAt = .seconds(Int64(claims.iat))
        signed = Data("\(parts[0]).\(parts[1])".utf8)
        self.signature = signature
    }

    /// RFC 7518 section 3.4 requires the concatenation of the two numbers. Some clients send them in DER, which the real
    /// service accepts.
    func isSigned(by key: P256.Signing.PublicKey) -> Bool {
        let isRaw = signature.count == 64
        let read =
            isRaw
            ? try? P256.Signing.ECDSASignature(rawRepresentation: signature)
            : try? P256.Signing.ECDSASignature(derRepresentation: signature)
        return read.map { key.isValidSignature($0, for: signed) } ?? false
    }

    /// Decodes Base64url without padding (RFC 7515 section 2); nil for any other text.
    private static func decoded(_ text: Substring) -> Data? { Base64URL.decode(text).map { Data($0) } }

    static func encoded(_ data: Data) -> String { Base64URL.encode(data) }
}
