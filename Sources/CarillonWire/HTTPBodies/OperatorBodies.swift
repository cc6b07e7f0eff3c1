package struct CreateApp: Codable, StrictBody, Sendable {
    package static let memberNames: Set = ["id"]
    package var id: String
    package init(id: String) { self.id = id }
}

package struct AppBody: Codable, Equatable, Sendable {
    package var id: String
    /// RFC 3339, in UTC.
    package var createdAt: String
    package init(id: String, createdAt: String) {
        self.id = id
        self.createdAt = createdAt
    }
}

package struct AppList: Codable, Sendable {
    package var apps: [AppBody]
    package init(apps: [AppBody]) { self.apps = apps }
}

package struct CreateKey: Codable, StrictBody, Sendable {
    package static let memberNames: Set = ["role", "app", "name"]
    package var role: String
    /// Required for `sender` and `client`, not allowed for `admin`.
    package var app: String?
    package var name: String?
    package init(role: String, app: String? = nil, name: String? = nil) {
        self.role = role
        self.app = app
        self.name = name
    }
}

package struct RotateKey: Codable, StrictBody, Sendable {
    package static let memberNames: Set = ["overlapSeconds"]
    /// How long the earlier secret goes on to work; 0 without it.
    package var overlapSeconds: Int?
    package init(overlapSeconds: Int?) { self.overlapSeconds = overlapSeconds }
}

package struct KeyBody: Codable, Equatable, Sendable {
    package var id: String
    package var role: String
    package var app: String?
    package var name: String?
    package var createdAt: String
    package var revokedAt: String?
    /// Present in the answer that made it, and never again.
    package var secret: String?
    package init(
        id: String, role: String, app: String?, name: String?, createdAt: String, revokedAt: String? = nil,
        secret: String? = nil
    ) {
        self.id = id
        self.role = role
        self.app = app
        self.name = name
        self.createdAt = createdAt
        self.revokedAt = revokedAt
        self.secret = secret
    }
}

package struct KeyList: Codable, Sendable {
    package var keys: [KeyBody]
    package init(keys: [KeyBody]) { self.keys = keys }
}

package struct RevokeChannel: Codable, StrictBody, Sendable {
    package static let memberNames: Set = ["code"]
    /// With a code of 200–599 the app hears `error`; without one it hears `closed`.
    package var code: Int?
    package init(code: Int?) { self.code = code }
}

/// How an app's users are told, without the secrets.
package struct ApprovalHookBody: Codable, Equatable, Sendable {
    package var url: String
    /// With which questions are signed; said once, when it is set.
    package var secret: String?
    package var setAt: String

    package init(url: String, secret: String?, setAt: String) {
        self.url = url
        self.secret = secret
        self.setAt = setAt
    }
}

package struct UserRulesBody: Codable, Equatable, Sendable {
    /// Where the key set is fetched from.
    package var jwksURL: String?
    /// How many keys were given.
    package var keys: Int?
    /// How many secrets were given.
    package var secrets: Int?
    package var algorithms: [String]
    package var audience: String
    package var issuer: String?
    package var setAt: String
    package init(algorithms: [String], audience: String, issuer: String?, setAt: String) {
        self.algorithms = algorithms
        self.audience = audience
        self.issuer = issuer
        self.setAt = setAt
    }
}
