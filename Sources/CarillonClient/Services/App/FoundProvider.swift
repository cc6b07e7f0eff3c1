/// A provider of services in the server's response to a search.
public struct FoundProvider: Hashable, Sendable {
    /// The address for requests.
    public var application: ServiceApplication
    /// The name of the app, for people.
    public var name: String
    /// The version of the app.
    public var version: String
    /// Whether the provider was connected.
    public var isLive: Bool
    /// The services of the provider, with their versions.
    public var services: [Service]
    /// Whether the provider is a user's device or a server.
    public var type: Kind
    /// The position of a server in its cluster; nil for a user's device.
    public var server: Server?
    /// The name of the provider's icon, which changes with the icon. ``ServiceClient/icon(of:)`` returns the icon.
    public var icon: String?
    /// The fingerprint of the provider's identity, as the server reported it. Compare it with ``ServiceProvider/fingerprint`` at
    /// the provider.
    public var fingerprint: String

    /// A service of the provider.
    public struct Service: Hashable, Sendable {
        public var id: String
        public var version: String
    }

    /// The kind of a provider.
    public enum Kind: String, Sendable {
        /// An app on a device of a user.
        case application
        /// A backend device that the operator marked, for all users.
        case server
    }

    /// A server in a cluster, with the values that the operator set.
    public struct Server: Hashable, Sendable {
        /// Another address of the server. Requests of services do not need it.
        public var host: String?
        public var port: Int?
        /// Servers with the priority 1 are called first. Among servers with equal priority the choice is random.
        public var priority: Int
    }
}
