import CarillonBasics
import CarillonWire
import Crypto
import Foundation

/// Identifies a sender to a push service (RFC 8292).
struct VapidSigner {
    private let key: P256.Signing.PrivateKey
    private let subject: String?

    /// - Parameter key: A private key on P-256: PEM or DER (PKCS #8 or SEC 1), or its 32 bytes in base64url.
    init(key: Data, subject: String?) throws {
        let material = KeyMaterial(bytes: Array(key))
        do {
            let bytes = try material.items.isEmpty ? Self.bare(material) : material.p256PrivateKey()
            self.key = try P256.Signing.PrivateKey(rawRepresentation: bytes)
        } catch let fault as KeyFault {
            throw CommandFault(ExitStatus.noInput, fault.words("the VAPID key", need: Self.need))
        } catch let fault as CommandFault {
            throw fault
        } catch {
            throw CommandFault(ExitStatus.noInput, "the VAPID key is not valid on the curve; it must be \(Self.need)")
        }
        self.subject = subject
    }

    private static let need = "a P-256 private key, in PEM form or as 32 bytes in base64url"

    /// Reads a key that consists only of base64url.
    private static func bare(_ material: KeyMaterial) throws -> [UInt8] {
        let spaces = CharacterSet.whitespacesAndNewlines.union(CharacterSet(charactersIn: "\u{FEFF}"))
        let text = (material.text ?? "").trimmingCharacters(in: spaces)
        guard !text.isEmpty else { throw KeyFault.empty }
        guard let bytes = Base64URL.decode(text) else {
            throw CommandFault(
                ExitStatus.noInput,
                "the VAPID key has no line that starts with \"-----BEGIN\" and is not base64url; it must be \(need)")
        }
        if bytes.count == 65 { throw KeyFault.found("a public key") }
        guard bytes.count == 32 else {
            throw KeyFault.found("a text of \(bytes.count) bytes in base64url without a line \"-----BEGIN\"")
        }
        return bytes
    }

    /// Returns the `Authorization` header for an endpoint. It is valid for twelve hours.
    func authorization(forEndpoint endpoint: String, at now: Date) throws -> String {
        guard let url = URL(string: endpoint), let scheme = url.scheme, let host = url.host else {
            throw CommandFault(ExitStatus.refused, "the endpoint is not a valid URL")
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
