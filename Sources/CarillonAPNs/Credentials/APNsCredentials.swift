/// The push credentials with which a client authenticates to APNs.
public struct APNsCredentials: Sendable {
    enum Kind: Sendable {
        case token(APNsTokenKey)
        case certificate(APNsCertificate)
    }

    let kind: Kind

    /// Returns push credentials with a signing key. One provider token is shared by all connections of all clients of the
    /// process that use the same key. It is renewed after 50 minutes.
    public static func token(_ key: APNsTokenKey) -> APNsCredentials { APNsCredentials(kind: .token(key)) }

    /// Returns push credentials with a client certificate.
    public static func certificate(_ certificate: APNsCertificate) -> APNsCredentials {
        APNsCredentials(kind: .certificate(certificate))
    }

    /// Reads a `.p8` file from Apple's developer portal.
    public static func token(p8 path: String, keyID: String, teamID: String) throws(APNsError) -> APNsCredentials {
        .token(try APNsTokenKey(path: path, keyID: keyID, teamID: teamID))
    }

    /// Reads a `.p12` file from Keychain Access.
    public static func certificate(p12 path: String, passphrase: String? = nil) throws(APNsError) -> APNsCredentials {
        .certificate(try APNsCertificate(p12Path: path, passphrase: passphrase))
    }

    var usesToken: Bool {
        if case .token = kind { true } else { false }
    }
}
