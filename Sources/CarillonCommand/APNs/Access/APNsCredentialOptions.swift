import ArgumentParser
import CarillonAPNs
import Foundation

/// With what a command shows Apple's service who it is: a token key, or a certificate.
struct APNsCredentialOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The token key: the .p8 file of Apple's developer portal.", valueName: "file"))
    var key: String?
    @Option(
        help: ArgumentHelp(
            "The key's ten characters; left out, they are read from a file name like AuthKey_ABC1234567.p8.",
            valueName: "id"))
    var keyId: String?
    @Option(help: ArgumentHelp("The team's ten characters.", valueName: "id"))
    var teamId: String?
    @Option(
        help: ArgumentHelp(
            "Instead of a key, a certificate: a .p12 file, or PEM with the certificate and its chain.", valueName: "file"))
    var cert: String?
    @Option(
        help: ArgumentHelp("The certificate's private key in PEM, when it is not in the file itself.", valueName: "file"))
    var certKey: String?
    @Option(
        help: ArgumentHelp(
            """
            A file whose first line is the passphrase of the .p12 or of the private key. The environment's \
            CARILLON_APNS_PASSPHRASE does as well; a passphrase is never an argument, which everybody on the machine \
            could read.
            """, valueName: "file"))
    var passphraseFile: String?

    func validate() throws {
        guard key == nil || cert == nil else { throw ValidationError("Say either --key or --cert, not both.") }
        if key == nil, keyId != nil || teamId != nil {
            throw ValidationError("--key-id and --team-id belong to --key FILE.")
        }
        if key != nil {
            guard identifier != nil else {
                throw ValidationError("--key needs --key-id ID, unless the file is called AuthKey_ID.p8.")
            }
            guard teamId != nil else { throw ValidationError("--key needs --team-id ID.") }
        }
        if cert == nil, certKey != nil || passphraseFile != nil {
            throw ValidationError("--cert-key and --passphrase-file belong to --cert FILE.")
        }
    }

    var areGiven: Bool { key != nil || cert != nil }
    var isToken: Bool { key != nil }

    /// The key's ID, as it was said or as the file is called.
    var identifier: String? {
        keyId ?? key.flatMap(TokenKeyFile.identifier)
    }

    /// - Throws: ``CommandFault`` when a file cannot be read, or is no key or certificate.
    func load() throws -> APNsCredentials {
        try reportingAPNsFaults {
            if let tokenKey = try tokenKey() { return .token(tokenKey) }
            if let certificate = try certificate() { return .certificate(certificate) }
            throw CommandFault(
                .validationFailure, "say who sends: --key FILE --key-id ID --team-id ID, or --cert FILE")
        }
    }

    func tokenKey() throws -> APNsTokenKey? {
        guard let key, let identifier, let teamId else { return nil }
        return try APNsTokenKey(pem: try InputFile.secretText(key), keyID: identifier, teamID: teamId)
    }

    func certificate() throws -> APNsCertificate? {
        guard let cert else { return nil }
        let passphrase = try passphrase()
        let bytes = try InputFile.secretOrCertificate(cert)
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.contains("-----BEGIN") else {
            guard certKey == nil else {
                throw CommandFault(
                    .validationFailure, "\(cert) is not PEM; a .p12 file holds its private key, so leave out --cert-key")
            }
            return try APNsCertificate(p12: Array(bytes), passphrase: passphrase)
        }
        let privateKey = try certKey.map(InputFile.secretText) ?? text
        guard privateKey.contains("PRIVATE KEY-----") else {
            throw CommandFault(
                ExitStatus.notAllowed, "\(certKey ?? cert) holds no private key; say where it is with --cert-key FILE")
        }
        if privateKey.contains("ENCRYPTED"), passphrase == nil {
            throw CommandFault(
                ExitStatus.notAllowed,
                "the private key in \(certKey ?? cert) is encrypted; give its passphrase with --passphrase-file FILE")
        }
        return try APNsCertificate(pem: text, privateKeyPEM: privateKey, passphrase: passphrase)
    }

    private func passphrase() throws -> String? {
        try passphraseFile.map(PassphraseFile.read) ?? Environment["CARILLON_APNS_PASSPHRASE"]
    }
}
