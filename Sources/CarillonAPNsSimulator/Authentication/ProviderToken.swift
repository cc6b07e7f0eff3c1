import CarillonBasics
import Crypto
import Foundation

/// A provider token as it was sent: a JSON Web Token (RFC 7519) with a fixed shape.
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
        /// A number; a string of digits is refused, as it is by the real service.
        var iat: Double
    }

    /// Fails for whatever is not an ES256 token with a key identifier of ten characters, a team and a numeric time.
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

    /// RFC 7518 section 3.4 wants the two numbers side by side; some clients send them in DER, which the real service takes.
    func isSigned(by key: P256.Signing.PublicKey) -> Bool {
        let isRaw = signature.count == 64
        let read =
            isRaw
            ? try? P256.Signing.ECDSASignature(rawRepresentation: signature)
            : try? P256.Signing.ECDSASignature(derRepresentation: signature)
        return read.map { key.isValidSignature($0, for: signed) } ?? false
    }

    /// Base64url without padding (RFC 7515 section 2); nil for anything else.
    private static func decoded(_ text: Substring) -> Data? { Base64URL.decode(text).map { Data($0) } }

    static func encoded(_ data: Data) -> String { Base64URL.encode(data) }
}
