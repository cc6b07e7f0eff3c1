/// With what a client shows the service who it is.
public struct APNsCredentials: Sendable {
    enum Kind: Sendable {
        case token(APNsTokenKey)
        case certificate(APNsCertificate)
    }

    let kind: Kind

    /// A token key. One signed token is shared by all connections of all clients of the process that use the same key, and is
    /// renewed after 50 minutes.
    public static func token(_ key: APNsTokenKey) -> APNsCredentials { APNsCredentials(kind: .token(key)) }

    /// A client certificate.
    public static func certificate(_ certificate: APNsCertificate) -> APNsCredentials {
        APNsCredentials(kind: .certificate(certificate))
    }

    /// A `.p8` file of Apple's developer portal.
    public static func token(p8 path: String, keyID: String, teamID: String) throws(APNsError) -> APNsCredentials {
        .token(try APNsTokenKey(path: path, keyID: keyID, teamID: teamID))
    }

    /// A `.p12` file of Keychain Access.
    public static func certificate(p12 path: String, passphrase: String? = nil) throws(APNsError) -> APNsCredentials {
        .certificate(try APNsCertificate(p12Path: path, passphrase: passphrase))
    }

    var usesToken: Bool {
        if case .token = kind { true } else { false }
    }
}
