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

package struct AppList: Decodable, Sendable {
    package var apps: [AppBody]
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
    /// How long the earlier secret stays valid, in seconds; 0 if absent.
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
    /// The secret. Only the response to the creation of the key contains it.
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

package struct KeyList: Decodable, Sendable {
    package var keys: [KeyBody]
}

package struct RevokeChannel: Codable, StrictBody, Sendable {
    package static let memberNames: Set = ["code"]
    /// With a code from 200 to 599 the app receives `error`; without a code it receives `closed`.
    package var code: Int?
}

/// The approval hook of an app.
package struct ApprovalHookBody: Codable, Equatable, Sendable {
    package var url: String
    /// The secret that signs the calls. The server returns it only when the hook is set.
    package var secret: String?
    package var setAt: String

    package init(url: String, secret: String?, setAt: String) {
        self.url = url
        self.secret = secret
        self.setAt = setAt
    }
}

package struct UserRulesBody: Codable, Equatable, Sendable {
    /// The URL of the key set.
    package var jwksURL: String?
    /// The number of configured keys.
    package var keys: Int?
    /// The number of configured secrets.
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
