import CarillonBasics
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A key with which provider tokens are signed: the `.p8` file of Apple's developer portal, with its two names.
public struct APNsTokenKey: Sendable {
    /// The key's ten characters.
    public let keyID: String
    /// The team's ten characters.
    public let teamID: String
    private let key: P256.Signing.PrivateKey

    /// The public key. It identifies the key.
    var publicKeyBytes: [UInt8] { Array(key.publicKey.rawRepresentation) }

    /// Reads a `.p8` file.
    public init(path: String, keyID: String, teamID: String) throws(APNsError) {
        try self.init(
            pem: String(decoding: FileBytes.read(path, of: "token key"), as: UTF8.self), keyID: keyID, teamID: teamID)
    }

    /// Takes the text of a `.p8` file.
    public init(pem: String, keyID: String, teamID: String) throws(APNsError) {
        for (name, value) in [("key", keyID), ("team", teamID)] {
            guard value.utf8.count == 10,
                value.utf8.allSatisfy({
                    (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                })
            else {
                throw APNsError(
                    .credentialsInvalid, "The \(name) ID has \(value.count) characters; it is 10 letters and digits.")
            }
        }
        guard !pem.contains("ENCRYPTED") else {
            throw APNsError(
                .credentialsInvalid,
                "The token key is encrypted; Apple's .p8 files are not. Decrypt it with openssl pkcs8.")
        }
        let pem = pem.drop { $0 == "\u{FEFF}" || $0.isWhitespace }
        do {
            key = try P256.Signing.PrivateKey(pemRepresentation: String(pem))
        } catch {
            // The cause could quote the key.
            throw APNsError(
                .credentialsInvalid,
                "The token key is not a P-256 private key in PEM form, as the .p8 files of Apple's portal are.")
        }
        self.keyID = keyID
        self.teamID = teamID
    }

    /// A JSON Web Token (RFC 7519) with ES256, issued at the given second.
    func sign(issuedAt: Int64) throws -> String {
        let header = JSONWriter.object {
            $0.member("alg", "ES256")
            $0.member("kid", keyID)
        }
        let claims = JSONWriter.object {
            $0.member("iss", teamID)
            $0.member("iat", issuedAt)
        }
        let signed = Base64URL.encode(header) + "." + Base64URL.encode(claims)
        let signature = try key.signature(for: Data(signed.utf8))
        return signed + "." + Base64URL.encode(signature.rawRepresentation)
    }
}

/// Files of keys and certificates.
enum FileBytes {
    static func read(_ path: String, of what: String) throws(APNsError) -> [UInt8] {
        do {
            return Array(try Data(contentsOf: URL(filePath: path)))
        } catch {
            throw APNsError(.credentialsInvalid, "The file of the \(what) cannot be read: \(path)", cause: error)
        }
    }
}
