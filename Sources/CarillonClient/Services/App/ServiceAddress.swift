import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A method of a version of a service.
public struct ServiceMethod: Hashable, Sendable {
    /// A reversed domain name in lower case: `com.example.transfer-file`.
    public var service: String
    /// One to four numbers with dots between them: `1.0.0.0`.
    public var version: String
    /// A letter, and up to 63 letters, digits and underscores.
    public var name: String

    /// AppKinetics' request to come to the front of the screen, which every provider has: ``ServiceClient/bringToFront(_:)``.
    public static let frontRequest = ServiceMethod(
        RequestHeader.frontService, RequestHeader.frontVersion, RequestHeader.frontMethod)

    /// Makes a name. Its validity is checked when it is used.
    public init(_ service: String, _ version: String, _ name: String) {
        self.service = service
        self.version = version
        self.name = name
    }
}

/// An installation of an app that sends or receives requests.
public struct ServiceApplication: Hashable, Sendable {
    /// The app, named like a bundle identifier.
    public var app: String
    /// The device; nil selects one device of the app: a connected one, or else the one that was last seen.
    public var device: String?

    /// - Parameters:
    ///   - app: The app.
    ///   - device: Nil for any installation of the app; a request is sent to one of them.
    public init(app: String, device: String? = nil) {
        self.app = app
        self.device = device
    }

    init(_ peer: ServicePeer) { self.init(app: peer.app, device: peer.device) }
}

/// Which app should come to the front of the screen. It is reported to the other side, and the library does nothing else with it.
public enum ForegroundPreference: String, Sendable {
    case preferMe
    case preferPeer
    case none
}

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

/// A request that a provider receives.
public struct ServiceRequest: Sendable {
    /// The id of the request, the same each time that it is handled.
    public let id: String
    public let consumer: ServiceApplication
    public let method: ServiceMethod
    public let parameters: ServiceValue
    /// The paths of the received files, which belong to the app.
    public let attachments: [String]
    public let foreground: ForegroundPreference
    /// The user of the consumer's device, if this provider is a server. The Carillon server reports the user; the consumer's seal
    /// does not cover it.
    public let user: String?
    /// The deadline of the reply, by the server's clock.
    public let deadline: Date
}

/// The reply of a provider to a request.
public struct ServiceReply: Hashable, Sendable {
    public var value: ServiceValue
    /// The paths of the reply's files.
    public var attachments: [String]

    /// - Parameters:
    ///   - value: The result; null if the method has no result.
    ///   - attachments: The paths of files. They are read before the reply is sent, and can be removed after
    ///     ``ServiceProviderEvent/didFinishSending(to:attachments:id:)``.
    public init(_ value: ServiceValue = .null, attachments: [String] = []) {
        self.value = value
        self.attachments = attachments
    }
}
