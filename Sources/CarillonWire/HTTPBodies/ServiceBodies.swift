/// The realm of an app; nil if the app does not share its users.
package struct RealmBody: Codable, Equatable, Sendable {
    package var realm: String?
    package init(realm: String?) { self.realm = realm }
}

/// A backend device: a provider of services for all users of its app.
package struct ClusterServerBody: Codable, Equatable, Sendable {
    package var device: String
    package var host: String?
    package var port: Int?
    package var priority: Int

    package init(device: String, host: String?, port: Int?, priority: Int) {
        self.device = device
        self.host = host
        self.port = port
        self.priority = priority
    }
}

package struct ClusterBody: Decodable, Sendable {
    package var servers: [ClusterServerBody]
}
