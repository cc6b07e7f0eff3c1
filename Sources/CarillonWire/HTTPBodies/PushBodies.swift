package import CarillonBasics

/// What is known of one push through a vendor's service.
package struct PushBody: Codable, Equatable, Sendable {
    /// `wake` or `alert`.
    package var kind: String
    /// `scheduled`, `handed`, `rejected`, `suspended`, `cancelled`, `expired`, `parked` or `unconfigured`.
    package var state: String
    /// Since when.
    package var at: String
    /// When it is tried next.
    package var dueAt: String?
    /// Apple's name for it, once it was decided.
    package var apnsID: String?
    /// What the vendor's service said.
    package var reason: String?
    /// True of an alert whose texts are shortened so that Apple takes its payload.
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

package struct PushList: Codable, Sendable {
    package var pushes: [PushBody]
    package init(pushes: [PushBody]) { self.pushes = pushes }
}

/// What would have been sent in the environment `test`.
package struct TestPushBody: Codable, Equatable, Sendable {
    package var at: String
    package var apnsID: String
    package var payload: JSONValue
    package init(at: String, apnsID: String, payload: JSONValue) {
        self.at = at
        self.apnsID = apnsID
        self.payload = payload
    }
}

package struct TestPushList: Codable, Sendable {
    package var pushes: [TestPushBody]
    package init(pushes: [TestPushBody]) { self.pushes = pushes }
}

/// What an app pushes with, without its secrets.
package struct CredentialBody: Codable, Equatable, Sendable {
    package var app: String
    package var environment: String
    /// `token` or `certificate`.
    package var kind: String
    package var bundleID: String
    package var keyID: String?
    package var teamID: String?
    /// Of a certificate.
    package var expiresAt: String?
    package var setAt: String
    /// Why pushes wait.
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

package struct CredentialList: Codable, Sendable {
    package var credentials: [CredentialBody]
    package init(credentials: [CredentialBody]) { self.credentials = credentials }
}
