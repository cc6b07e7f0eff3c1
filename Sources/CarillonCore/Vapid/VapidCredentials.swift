import CarillonBasics
package import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The VAPID credentials of one request, with which a sender identifies itself voluntarily (RFC 8292).
package struct VapidCredentials: Equatable, Sendable {
    package var token: String
    /// The sender's public key: an uncompressed P-256 point.
    package var key: [UInt8]

    /// - Parameter key: The point in base64url.
    package init(token: String, key: String) throws(Refusal) {
        guard let bytes = Base64URL.decodeLeniently(key), bytes.count == 65 else {
            throw Refusal(.vapidInvalid, "The VAPID public key must be an uncompressed P-256 point in base64url.")
        }
        self.token = token
        self.key = bytes
    }

    /// How long ago `exp` may have passed, to allow for differences between maintained clocks.
    package static let expiredLeewaySeconds: Int64 = 30
    /// How far `exp` may be beyond 24 hours. Common libraries set exactly 24 hours, and the sender's clock can be ahead.
    package static let aheadLeewaySeconds: Int64 = 300

    /// Checks the signature (ES256 only), the audience and the times (RFC 8292 section 2). Returns the expiry of the token in
    /// seconds since 1970.
    func verify(for addresses: PublicURLs, at now: Timestamp) throws(Refusal) -> Double {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, token.utf8.count <= 4096,
            let header: Header = Self.decode(parts[0]), let claims: Claims = Self.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw Refusal(.vapidInvalid, "The VAPID token must be a JWT with a numeric \"exp\" and an \"aud\".") }
        guard header.alg == "ES256" else {
            throw Refusal(.vapidInvalid, "The VAPID token must be signed with ES256.")
        }
        guard let publicKey = try? P256.Signing.PublicKey(x963Representation: key),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature),
            publicKey.isValidSignature(signature, for: Array("\(parts[0]).\(parts[1])".utf8))
        else { throw Refusal(.vapidInvalid, "The VAPID token's signature does not match its public key.") }
        try Self.check(expiry: claims.exp, at: now)
        guard claims.aud.values.contains(where: { addresses.match($0)?.isOrigin == true }) else {
            let given = claims.aud.values.first ?? ""
            let audience = addresses.origin
            let hint = Self.host(of: given) == Self.host(of: audience) ? " The port differs." : ""
            throw Refusal(
                .vapidInvalid,
                "The \"aud\" of the VAPID token must be \(audience), the origin of the endpoint; it is \"\(given.prefix(256))\".\(hint)"
            )
        }
        return claims.exp
    }

    static func check(expiry: Double, at now: Timestamp) throws(Refusal) {
        guard expiry > Double(now.seconds - Self.expiredLeewaySeconds) else {
            throw Refusal(
                .vapidInvalid,
                "The VAPID token has expired: \"exp\" is more than \(Self.expiredLeewaySeconds) seconds in the past.")
        }
        guard expiry <= Double(now.seconds + 86_400 + Self.aheadLeewaySeconds) else {
            throw Refusal(
                .vapidInvalid,
                "The \"exp\" of the VAPID token must be at most 24 hours and \(Self.aheadLeewaySeconds) seconds ahead.")
        }
    }

    /// Returns the scheme and the host of an origin, without its port.
    private static func host(of origin: String) -> Substring {
        let text = origin.hasSuffix("/") ? origin.dropLast() : origin[...]
        guard let colon = text.lastIndex(of: ":"), text[colon...].dropFirst().allSatisfy(\.isNumber) else { return text }
        return text[..<colon]
    }

    private static func decode<Value: Decodable>(_ part: Substring) -> Value? {
        guard let bytes = Base64URL.decode(part) else { return nil }
        return try? JSONDecoder().decode(Value.self, from: Data(bytes))
    }

    private struct Header: Decodable {
        var alg: String
    }

    private struct Claims: Decodable {
        var aud: Audience
        var exp: Double
    }

    private struct Audience: Decodable {
        var values: [String]
        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let value = try? container.decode(String.self) {
                values = [value]
            } else {
                values = try container.decode([String].self)
            }
        }
    }
}
