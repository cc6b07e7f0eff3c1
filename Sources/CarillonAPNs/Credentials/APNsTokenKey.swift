package import CarillonBasics
import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A signing key for provider tokens: a `.p8` file from Apple's developer portal, with its key ID and team ID.
public struct APNsTokenKey: Sendable {
    /// The ID of the key: ten characters.
    public let keyID: String
    /// The ID of the team: ten characters.
    public let teamID: String
    private let key: P256.Signing.PrivateKey

    /// The public key. It identifies the key.
    var publicKeyBytes: [UInt8] { Array(key.publicKey.rawRepresentation) }

    /// Reads a `.p8` file.
    public init(path: String, keyID: String, teamID: String) throws(APNsError) {
        try self.init(KeyMaterial(bytes: FileBytes.read(path, of: "token key")), keyID: keyID, teamID: teamID)
    }

    /// Decodes the text of a `.p8` file: a P-256 private key in PEM form (PKCS #8 or SEC 1).
    ///
    /// White space, the length of lines, text outside of the block and a byte-order mark do not matter, and line breaks can be
    /// written as `\n`.
    public init(pem: String, keyID: String, teamID: String) throws(APNsError) {
        try self.init(KeyMaterial(pem), keyID: keyID, teamID: teamID)
    }

    /// Decodes the content of a `.p8` file, which can be in DER form as well.
    package init(_ material: KeyMaterial, keyID: String, teamID: String) throws(APNsError) {
        try AppleIdentifier.check(keyID, "key ID")
        try AppleIdentifier.check(teamID, "team ID")
        key = try Self.key(in: material)
        self.keyID = keyID
        self.teamID = teamID
    }

    private static func key(in material: KeyMaterial) throws(APNsError) -> P256.Signing.PrivateKey {
        let fault: KeyFault
        do {
            return try P256.Signing.PrivateKey(rawRepresentation: try material.p256PrivateKey())
        } catch let known as KeyFault {
            fault = known
        } catch {
            // The cause of this error could contain the key.
            fault = .undecodable(label: "PRIVATE KEY")
        }
        throw APNsError(
            .credentialsInvalid,
            fault.sentence("The token key", need: "a P-256 private key in PEM form, as in the .p8 files of Apple's portal"))
    }

    /// Returns a JSON Web Token (RFC 7519) with ES256, issued at the given second.
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

/// Reads files of keys and certificates.
enum FileBytes {
    static func read(_ path: String, of what: String) throws(APNsError) -> [UInt8] {
        do {
            return Array(try Data(contentsOf: URL(filePath: path)))
        } catch {
            // The cause contains the path as well, so it is left out when the path is not shown.
            guard PathPhrase.isShown(path) else {
                throw APNsError(
                    .credentialsInvalid,
                    "The file of the \(what) cannot be read; its path is not shown because it could be a key.")
            }
            throw APNsError(.credentialsInvalid, "The file of the \(what) cannot be read: \(path)", cause: error)
        }
    }
}
