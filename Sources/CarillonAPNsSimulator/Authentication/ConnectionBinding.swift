/// The credentials that one connection has presented, and the key and apps to which its first push bound it.
///
/// A connection with a client certificate needs no token and ignores tokens. Any other connection needs a provider token with
/// each request. The first valid token binds the connection to its key and to the apps that exist at that moment: an
/// unrelated key, or an app that was registered later, needs a new connection. A token can be replaced by another one, but
/// not within 20 minutes of the first push with it on the connection. The token's time of issue does not matter for this
/// rule.
struct ConnectionBinding: Sendable {
    private struct Accepted: Sendable {
        var authorization: String
        var key: SigningKey
        var issuedAt: Timestamp
        /// The time of the first push with the token.
        var since: Timestamp
    }

    static let tokenLife = Duration.hours(1)
    static let shortestTokenUse = Duration.minutes(20)

    let certificate: ClientCertificate?
    private var current: Accepted?
    private var firstKey: SigningKey?
    private var revision: Int?
    private var wedgedBy: Reason?

    init(certificate: ClientCertificate? = nil) { self.certificate = certificate }

    /// Whether only one stream may be open until a response shows that the credentials are valid.
    var startsWithOneStream: Bool { certificate == nil }
    /// The key ID of the newest valid token.
    var keyID: String? { current?.key.id }

    /// The newest valid token.
    var currentAuthorization: String? { current?.authorization }

    // MARK: Authentication

    /// Returns why the credentials of a request are rejected; nil if they are valid.
    /// - Parameter isSticky: Whether, after an expired token or a token that was changed too early, all later requests on the
    ///   connection are rejected. This was observed at the real service.
    mutating func refusal(
        _ authorization: String?, in environment: Environment, accounts: Accounts, isSticky: Bool, at now: Timestamp
    ) -> Reason? {
        if let certificate { return refusal(certificate, in: environment, accounts: accounts, at: now) }
        if let wedgedBy { return wedgedBy }
        let reason = tokenRefusal(authorization, in: environment, accounts: accounts, at: now)
        if isSticky, reason == .expiredProviderToken || reason == .tooManyProviderTokenUpdates { wedgedBy = reason }
        return reason
    }

    private mutating func refusal(
        _ certificate: ClientCertificate, in environment: Environment, accounts: Accounts, at now: Timestamp
    ) -> Reason? {
        guard certificate.isValid(at: now) else { return .badCertificate }
        guard certificate.environments.contains(environment) else { return .badCertificateEnvironment }
        if revision == nil { revision = accounts.revision }
        return nil
    }

    private mutating func tokenRefusal(
        _ authorization: String?, in environment: Environment, accounts: Accounts, at now: Timestamp
    ) -> Reason? {
        guard let authorization, !authorization.isEmpty else { return .missingProviderToken }
        if let current, current.authorization == authorization {
            guard accounts.keys[current.key.id]?.isRevoked == false else { return .invalidProviderToken }
            return now - Self.tokenLife > current.issuedAt ? .expiredProviderToken : nil
        }
        guard let token = ProviderToken(authorization: authorization), let account = accounts.keys[token.keyID],
            !account.isRevoked, account.key.teamID == token.teamID, token.isSigned(by: account.verifier),
            token.issuedAt <= now + Self.tokenLife
        else { return .invalidProviderToken }
        guard account.key.environments.contains(environment) else { return .badEnvironmentKeyIDInToken }
        guard now - Self.tokenLife <= token.issuedAt else { return .expiredProviderToken }
        if let firstKey, !account.key.isRelated(to: firstKey) { return .unrelatedKeyIDInToken }
        if let current, now < current.since + Self.shortestTokenUse { return .tooManyProviderTokenUpdates }
        current = Accepted(
            authorization: authorization, key: account.key, issuedAt: token.issuedAt, since: now)
        if firstKey == nil {
            firstKey = account.key
            revision = accounts.revision
        }
        return nil
    }

    // MARK: Authorization

    /// Whether the credentials are valid for an APNs topic. Call it only after they were found valid.
    func allows(_ topic: String, of bundleID: String, accounts: Accounts, acceptsUnknownApps: Bool) -> Bool {
        if let known = accounts.apps[bundleID] {
            guard known.revision <= revision ?? .max else { return false }
            if let key = current?.key, certificate == nil, known.app.teamID != key.teamID { return false }
        } else if !acceptsUnknownApps {
            return false
        }
        if let certificate { return certificate.allows(topic) }
        guard let topics = current?.key.topics else { return true }
        return topics.contains(topic) || topics.contains(bundleID)
    }
}
