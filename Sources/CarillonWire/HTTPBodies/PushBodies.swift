/// The state of one push to a gateway.
package struct PushBody: Codable, Equatable, Sendable {
    /// `wake` or `alert`.
    package var kind: String
    /// `scheduled`, `handed`, `rejected`, `suspended`, `cancelled`, `expired`, `parked` or `unconfigured`.
    package var state: String
    /// The time of the last change of the state.
    package var at: String
    /// The time of the next attempt.
    package var dueAt: String?
    /// Apple's identifier of the push, from the time at which it is assigned.
    package var apnsID: String?
    /// The reason that the gateway returned.
    package var reason: String?
    /// True for an alert whose texts were shortened to fit Apple's payload limit.
    package var shortened: Bool?
    package init(
        kind: String, state: String, at: String, dueAt: String?, apnsID: String?, reason: String?, shortened: Bool? = nil
    ) {
        self.kind = kind
        self.state = state
        self.at = at
        self.dueAt = dueAt
        self.apnsID = apnsID
        self.reason = reason
        self.shortened = shortened
    }
}

/// The push credentials of an app, without secrets.
package struct CredentialBody: Codable, Equatable, Sendable {
    package var app: String
    package var environment: String
    /// `token` or `certificate`.
    package var kind: String
    package var bundleID: String
    package var keyID: String?
    package var teamID: String?
    /// The end of validity, for a certificate.
    package var expiresAt: String?
    package var setAt: String
    /// Why pushes are waiting.
    package var fault: String?
    package init(
        app: String, environment: String, kind: String, bundleID: String, keyID: String?, teamID: String?,
        expiresAt: String?,
        setAt: String, fault: String?
    ) {
        self.app = app
        self.environment = environment
        self.kind = kind
        self.bundleID = bundleID
        self.keyID = keyID
        self.teamID = teamID
        self.expiresAt = expiresAt
        self.setAt = setAt
        self.fault = fault
    }
}

package struct CredentialList: Decodable, Sendable {
    package var credentials: [CredentialBody]
}
