package import CarillonAPNs
package import CarillonBasics
package import CarillonWire

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// The push credentials of an app for Apple's push service: a signing key, or a certificate.
package struct GatewaySecret: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        case token(p8: String, keyID: String, teamID: String)
        case archive(p12: [UInt8], passphrase: String?)
        case certificate(pem: String, privateKey: String, passphrase: String?)
    }

    package var kind: Kind
    /// The APNs topic of the app's pushes.
    package var bundleID: String

    package init(_ kind: Kind, bundleID: String) {
        self.kind = kind
        self.bundleID = bundleID
    }

    /// - Throws: `APNsError` if the push credentials cannot be used now.
    package func credentials() throws(APNsError) -> APNsCredentials {
        switch kind {
        case .token(let p8, let keyID, let teamID):
            .token(try APNsTokenKey(pem: p8, keyID: keyID, teamID: teamID))
        case .archive(let p12, let passphrase):
            .certificate(try APNsCertificate(p12: p12, passphrase: passphrase))
        case .certificate(let pem, let key, let passphrase):
            .certificate(try APNsCertificate(pem: pem, privateKeyPEM: key, passphrase: passphrase))
        }
    }

    private func certificate() throws(APNsError) -> APNsCertificate? {
        switch kind {
        case .token: nil
        case .archive(let p12, let passphrase): try APNsCertificate(p12: p12, passphrase: passphrase)
        case .certificate(let pem, let key, let passphrase):
            try APNsCertificate(pem: pem, privateKeyPEM: key, passphrase: passphrase)
        }
    }

    // MARK: JSON form

    package static let memberNames: Set = [
        "p8", "keyID", "teamID", "p12", "certificate", "privateKey", "passphrase", "bundleID",
    ]

    /// - Parameters:
    ///   - body: An object without unknown members.
    ///   - app: The app. Its name is the bundle ID, unless the body contains another.
    package init(_ body: JSONValue, of app: AppID) throws(Refusal) {
        func text(_ name: String) throws(Refusal) -> String? {
            switch body[name] {
            case nil, .null: return nil
            case .string(let text): return text
            case let other?:
                throw Refusal(.fieldInvalid, "The field \"\(name)\" is \(Self.kind(of: other)); it must be a text.")
            }
        }
        func needed(_ name: String) throws(Refusal) -> String {
            guard let text = try text(name) else { throw Refusal(.fieldMissing, "The field \"\(name)\" is missing.") }
            return text
        }
        bundleID = try text("bundleID") ?? app.text
        let forms = ["p8", "p12", "certificate"].filter { body[$0] != nil }
        guard forms.count == 1 else {
            let found = forms.isEmpty ? "none" : forms.map { "\"\($0)\"" }.joined(separator: " and ")
            throw Refusal(
                .fieldMissing, "The body has \(found); it must have one of \"p8\", \"p12\" and \"certificate\".")
        }
        switch forms[0] {
        case "p8":
            kind = .token(p8: try needed("p8"), keyID: try needed("keyID"), teamID: try needed("teamID"))
        case "p12":
            kind = .archive(p12: try Self.archive(try needed("p12")), passphrase: try text("passphrase"))
        default:
            kind = .certificate(
                pem: try needed("certificate"), privateKey: try needed("privateKey"), passphrase: try text("passphrase"))
        }
    }

    private static func archive(_ text: String) throws(Refusal) -> [UInt8] {
        switch PEMReader.base64(text) {
        case .success(let bytes): return bytes
        case .failure(let fault):
            let found =
                switch fault.damage {
                case .characterInvalid(let scalar): "has the character \(KeyFault.phrase(scalar))"
                case .lengthInvalid(let count): "has \(count) characters, which is not a multiple of 4"
                case .empty: "is empty"
                default: "is damaged"
                }
            throw Refusal(.fieldInvalid, "The field \"p12\" \(found); it must be the file's bytes in base64.")
        }
    }

    private static func kind(of value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool: "true or false"
        case .integer, .number: "a number"
        case .string: "a text"
        case .array: "an array"
        case .object: "an object"
        }
    }

    package var json: JSONValue {
        var members: [(String, String?)] = [("bundleID", bundleID)]
        switch kind {
        case .token(let p8, let keyID, let teamID): members += [("p8", p8), ("keyID", keyID), ("teamID", teamID)]
        case .archive(let p12, let passphrase):
            members += [("p12", Data(p12).base64EncodedString()), ("passphrase", passphrase)]
        case .certificate(let pem, let key, let passphrase):
            members += [("certificate", pem), ("privateKey", key), ("passphrase", passphrase)]
        }
        return .object(members.compactMap { name, value in value.map { .init(name: name, value: .string($0)) } })
    }

    // MARK: Checking

    /// Checks everything that can be checked without a connection to the service.
    ///
    /// - Returns: The part of the push credentials that is not secret.
    /// - Throws: ``Refusal`` with a description of the fault.
    package func check(for environment: PushEnvironment, at now: Date) throws(Refusal) -> GatewaySummary {
        do {
            _ = try credentials()
            guard case .token(_, let keyID, let teamID) = kind else {
                return try summary(of: try certificate(), for: environment, at: now)
            }
            return GatewaySummary(kind: "token", bundleID: bundleID, keyID: keyID, teamID: teamID)
        } catch let error as APNsError {
            throw Refusal(.credentialsInvalid, error.message)
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            throw Refusal(.credentialsInvalid, "The credentials cannot be used.")
        }
    }

    private func summary(
        of certificate: APNsCertificate?, for environment: PushEnvironment, at now: Date
    ) throws(Refusal) -> GatewaySummary {
        guard let certificate else { throw Refusal(.credentialsInvalid, "There is no certificate.") }
        guard certificate.expiresAt > now else {
            throw Refusal(
                .credentialsInvalid,
                "The certificate expired at \(Self.text(certificate.expiresAt)), and it is \(Self.text(now)) now.")
        }
        guard certificate.validFrom <= now else {
            throw Refusal(
                .credentialsInvalid,
                "The certificate is not valid before \(Self.text(certificate.validFrom)), and it is \(Self.text(now)) now.")
        }
        if let own = certificate.bundleID, own != bundleID, !certificate.mentions(bundleID) {
            throw Refusal(
                .credentialsInvalid, "The certificate is for \(own), and the app's bundle ID is \(bundleID).")
        }
        let (sandbox, production) = (certificate.isForSandbox, certificate.isForProduction)
        if sandbox || production, !(environment == .sandbox ? sandbox : production) {
            throw Refusal(
                .credentialsInvalid,
                "The certificate is for \(sandbox ? "sandbox" : "production"); the environment \(environment.rawValue) needs its own."
            )
        }
        return GatewaySummary(kind: "certificate", bundleID: bundleID, expiresAt: Self.text(certificate.expiresAt))
    }

    private static func text(_ date: Date) -> String { Timestamp3339.text(Int64(date.timeIntervalSince1970) * 1000) }
}

/// The part of push credentials that is not secret.
package struct GatewaySummary: Codable, Equatable, Sendable {
    /// `token` or `certificate`.
    package var kind: String
    package var bundleID: String
    package var keyID: String?
    package var teamID: String?
    package var expiresAt: String?
}
