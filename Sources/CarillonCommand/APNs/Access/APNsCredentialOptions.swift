import ArgumentParser
import CarillonAPNs
import Foundation

/// The options that identify the sender to Apple's push service: a signing key, or a certificate.
struct APNsCredentialOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The signing key: the .p8 file of Apple's developer portal.", valueName: "file"))
    var key: String?
    @Option(
        help: ArgumentHelp(
            "The ten characters of the key ID. Default: read from a file name like AuthKey_ABC1234567.p8.",
            valueName: "id"))
    var keyId: String?
    @Option(help: ArgumentHelp("The ten characters of the team ID.", valueName: "id"))
    var teamId: String?
    @Option(
        help: ArgumentHelp(
            "A certificate, in place of a key: a .p12 file, PEM with the certificate and its chain, or one certificate in DER.",
            valueName: "file"))
    var cert: String?
    @Option(
        help: ArgumentHelp(
            "The private key of the certificate in PEM or DER, if it is not in the file of the certificate.",
            valueName: "file"))
    var certKey: String?
    @Option(
        help: ArgumentHelp(
            """
            A file whose first line is the passphrase of the .p12 file or of the private key; or CARILLON_APNS_PASSPHRASE \
            in the environment. A passphrase cannot be an argument, because all users of the machine could read it.
            """, valueName: "file"))
    var passphraseFile: String?

    func validate() throws {
        guard key == nil || cert == nil else { throw ValidationError("Use either --key or --cert, not both.") }
        if key == nil, keyId != nil || teamId != nil {
            throw ValidationError("--key-id and --team-id need --key FILE.")
        }
        if key != nil {
            guard identifier != nil else {
                throw ValidationError(TokenKeyFile.withoutIdentifier(key ?? "", option: "--key"))
            }
            guard teamId != nil else { throw ValidationError("--key needs --team-id ID.") }
        }
        if cert == nil, certKey != nil || passphraseFile != nil {
            throw ValidationError("--cert-key and --passphrase-file need --cert FILE.")
        }
    }

    var areGiven: Bool { key != nil || cert != nil }
    var isToken: Bool { key != nil }

    /// The key's ID, from the option or from the name of the file.
    var identifier: String? {
        keyId ?? key.flatMap(TokenKeyFile.identifier)
    }

    /// - Throws: ``CommandFault`` if a file cannot be read, or is not a key or certificate.
    func load() throws -> APNsCredentials {
        try reportingAPNsFaults {
            if let tokenKey = try tokenKey() { return .token(tokenKey) }
            if let certificate = try certificate() { return .certificate(certificate) }
            throw CommandFault(
                .validationFailure, "name the credentials of the sender: --key FILE --key-id ID --team-id ID, or --cert FILE"
            )
        }
    }

    func tokenKey() throws -> APNsTokenKey? {
        guard let key, let identifier, let teamId else { return nil }
        return try APNsTokenKey(try InputFile.secretMaterial(key), keyID: identifier, teamID: teamId)
    }

    func certificate() throws -> APNsCertificate? {
        guard let cert else { return nil }
        let passphrase = try passphrase()
        switch try CertificateFile(cert, keyFile: certKey, hasPassphrase: passphrase != nil) {
        case .archive(let bytes):
            return try APNsCertificate(p12: bytes, passphrase: passphrase)
        case .pem(let certificate, let privateKey):
            return try APNsCertificate(pem: certificate, privateKeyPEM: privateKey, passphrase: passphrase)
        }
    }

    private func passphrase() throws -> String? {
        try passphraseFile.map(PassphraseFile.read) ?? Environment["CARILLON_APNS_PASSPHRASE"]
    }
}
