import CarillonBasics
import CarillonWire
import Crypto
import Foundation

/// Identifies a sender to a push service (RFC 8292).
struct VapidSigner {
    private let key: P256.Signing.PrivateKey
    private let subject: String?

    /// - Parameter key: A private key on P-256: PEM (PKCS #8 or SEC 1), or its 32 bytes in base64url.
    init(key: Data, subject: String?) throws {
        let text = String(decoding: key, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        do {
            if text.hasPrefix("-----BEGIN") {
                self.key = try P256.Signing.PrivateKey(pemRepresentation: text)
            } else {
                self.key = try P256.Signing.PrivateKey(rawRepresentation: Base64URL.decode(text) ?? [])
            }
        } catch {
            throw CommandFault(
                ExitStatus.noInput, "the VAPID key must be a P-256 private key, as PEM or as 32 bytes in base64url")
        }
        self.subject = subject
    }

    /// The `Authorization` header for an endpoint, good for twelve hours.
    func authorization(forEndpoint endpoint: String, at now: Date) throws -> String {
        guard let url = URL(string: endpoint), let scheme = url.scheme, let host = url.host else {
            throw CommandFault(ExitStatus.refused, "the endpoint is not an address")
        }
        let origin = "\(scheme)://\(host.contains(":") ? "[\(host)]" : host)\(url.port.map { ":\($0)" } ?? "")"
        let claims = JSONWriter.object { claims in
            claims.member("aud", origin)
            claims.member("exp", Int64(now.timeIntervalSince1970) + 43_200)
            claims.member("sub", subject)
        }
        let signed = Base64URL.encode(#"{"typ":"JWT","alg":"ES256"}"#.utf8) + "." + Base64URL.encode(claims)
        let signature = try key.signature(for: Data(signed.utf8)).rawRepresentation
        return "vapid t=\(signed).\(Base64URL.encode(signature)), k=\(Base64URL.encode(key.publicKey.x963Representation))"
    }
}
