import ArgumentParser
import CarillonAPNs
import CarillonBasics
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1

/// `carillon apps credentials`: the push credentials of an app for Apple's push service.
struct CredentialsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credentials", abstract: "Set, list and remove the push credentials of an app for Apple.",
        discussion: """
            The server stores push credentials encrypted with its keys, which a wrapping key file encrypts (serve \
            --key-file). They are checked when they are set, and a running server uses them at once.
            """,
        subcommands: [Set.self, List.self, Remove.self])

    struct Set: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Set the push credentials of an app for one of Apple's environments, and replace earlier ones.")
        @Argument(help: "The app.") var app: String
        @Option(help: "production or sandbox.") var environment = "production"
        @OptionGroup var files: CredentialFiles
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                let (credential, summary) = try await domain.gateways.set(
                    try files.body(), of: try AppID.checked(app), for: try PushEnvironment.checked(environment))
                options.show(CredentialBody(credential, summary, nil), event: "set")
            } onServer: { client in
                let path = "/v1/apps/\(app)/credentials/\(environment)"
                options.show(
                    try await client.call(.PUT, path, try files.body(), as: CredentialBody.self), event: "set")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the push credentials of an app, without their secrets.")
        @Argument(help: "The app.") var app: String
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                for (credential, summary, fault) in try await domain.gateways.credentials(of: try AppID.checked(app)) {
                    options.show(CredentialBody(credential, summary, fault), event: nil)
                }
            } onServer: { client in
                let list = try await client.call(.GET, "/v1/apps/\(app)/credentials", as: CredentialList.self)
                for credential in list.credentials { options.show(credential, event: nil) }
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the push credentials of an app for an environment.")
        @Argument(help: "The app.") var app: String
        @Option(help: "production or sandbox.") var environment = "production"
        @OptionGroup var options: OperatorOptions

        func run() async throws {
            try await options.perform { domain in
                try await domain.gateways.remove(
                    of: try AppID.checked(app), for: try PushEnvironment.checked(environment))
            } onServer: { client in
                _ = try client.accepted(try await client.send(.DELETE, "/v1/apps/\(app)/credentials/\(environment)"))
            }
            options.printer.print(
                ["event": "removed", "app": .text(app), "environment": .text(environment)],
                otherwise: "removed the push credentials of \(app) for \(environment)")
        }
    }
}

/// The files of a signing key or a certificate, in the form that the server accepts.
struct CredentialFiles: ParsableArguments {
    @Option(help: ArgumentHelp("The signing key: the .p8 file of Apple's developer portal.", valueName: "file"))
    var p8: String?
    @Option(
        help: ArgumentHelp(
            "The ten characters of the key ID. Default: read from a file name like AuthKey_ABC1234567.p8.",
            valueName: "id"))
    var keyId: String?
    @Option(help: ArgumentHelp("The ten characters of the team ID.", valueName: "id")) var teamId: String?
    @Option(help: ArgumentHelp("A certificate in a .p12 file, in place of a key.", valueName: "file")) var p12: String?
    @Option(
        help: ArgumentHelp(
            "A PEM file with the certificate and its chain, or one certificate in DER, in place of a key.", valueName: "file"
        ))
    var cert: String?
    @Option(
        help: ArgumentHelp(
            "The private key of the certificate in PEM or DER, if it is not in the same file.", valueName: "file"))
    var certKey: String?
    @Option(
        help: ArgumentHelp(
            "A file whose first line is the passphrase; or CARILLON_APNS_PASSPHRASE in the environment.",
            valueName: "file"))
    var passphraseFile: String?
    @Option(help: ArgumentHelp("The APNs topic of the app's pushes. Default: the app's name.", valueName: "id"))
    var bundleId: String?

    func validate() throws {
        guard [p8, p12, cert].compactMap(\.self).count == 1 else {
            throw ValidationError("Use one of --p8 FILE, --p12 FILE and --cert FILE.")
        }
        if p8 == nil, keyId != nil || teamId != nil {
            throw ValidationError("--key-id and --team-id need --p8 FILE.")
        }
        if p8 != nil {
            guard identifier != nil else {
                throw ValidationError(TokenKeyFile.withoutIdentifier(p8 ?? "", option: "--p8"))
            }
            guard teamId != nil else { throw ValidationError("--p8 needs --team-id ID.") }
        }
    }

    private var identifier: String? { keyId ?? p8.flatMap(TokenKeyFile.identifier) }

    func body() throws -> JSONValue {
        var members: [(String, String?)] = [("bundleID", bundleId)]
        if let p8 {
            members += [("p8", try Self.tokenKey(p8)), ("keyID", identifier), ("teamID", teamId)]
        } else if let p12 {
            members += [("p12", try Self.archive(p12).base64EncodedString()), ("passphrase", try passphrase())]
        } else if let cert {
            let passphrase = try passphrase()
            switch try CertificateFile(cert, keyFile: certKey, hasPassphrase: passphrase != nil) {
            case .archive:
                throw CommandFault(.validationFailure, "\(cert) is a .p12 file, or is damaged; name a .p12 file with --p12")
            case .pem(let certificate, let keys):
                let privateKey = try reportingAPNsFaults {
                    try APNsCertificate.privateKey(in: keys, passphrase: passphrase, of: certificate)
                }
                members += [("certificate", certificate), ("privateKey", privateKey), ("passphrase", passphrase)]
            }
        }
        return .object(members.compactMap { name, value in value.map { .init(name: name, value: .string($0)) } })
    }

    /// Returns the key of a file in PEM, without the other contents of the file. A file without a P-256 private key is not sent.
    private static func tokenKey(_ file: String) throws -> String {
        let material = try InputFile.secretMaterial(file)
        do {
            _ = try material.p256PrivateKey()
            return try material.privateKey().text
        } catch {
            let need = "a P-256 private key in PEM or DER form, as in the .p8 files of Apple's portal"
            throw CommandFault(ExitStatus.notAllowed, error.words(file, need: need))
        }
    }

    private static func archive(_ file: String) throws -> Data {
        let content = try InputFile.secret(file)
        let bytes = Array(content)
        let material = KeyMaterial(bytes: bytes)
        guard !material.isCertificateFile else {
            throw CommandFault(
                ExitStatus.notAllowed,
                "\(file) is a certificate without a private key; export the certificate and its key together, or name the certificate with --cert and its key with --cert-key"
            )
        }
        guard material.text == nil || material.items.isEmpty else {
            throw CommandFault(.validationFailure, "\(file) is PEM, not a .p12 file; name it with --cert")
        }
        // A PKCS #12 file is a sequence, in DER or in BER, which the material does not read.
        guard bytes.first == 0x30, material.items.allSatisfy({ $0.content == .archive }) else {
            throw CommandFault(ExitStatus.notAllowed, "\(file) is not a .p12 file, or is damaged")
        }
        return content
    }

    private func passphrase() throws -> String? {
        try passphraseFile.map(PassphraseFile.read) ?? Environment["CARILLON_APNS_PASSPHRASE"]
    }
}

extension OperatorOptions {
    fileprivate func show(_ credential: CredentialBody, event: String?) {
        printer.print(
            [
                "event": event.map(OutputValue.text), "app": .text(credential.app),
                "environment": .text(credential.environment), "kind": .text(credential.kind),
                "bundleID": .text(credential.bundleID), "setAt": .text(credential.setAt),
                "keyID": credential.keyID.map(OutputValue.text), "teamID": credential.teamID.map(OutputValue.text),
                "expiresAt": credential.expiresAt.map(OutputValue.text), "fault": credential.fault.map(OutputValue.text),
            ],
            words: [
                event, credential.app, credential.environment, credential.kind, credential.bundleID,
                credential.keyID.map { "key \($0)" }, credential.teamID.map { "team \($0)" },
                credential.expiresAt.map { "until \($0)" }, credential.fault.map { "paused: \($0)" },
            ])
    }
}
