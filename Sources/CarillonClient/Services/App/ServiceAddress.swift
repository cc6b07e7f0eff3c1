import CarillonWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A method of a version of a service.
public struct ServiceMethod: Hashable, Sendable {
    /// A domain in reverse, in lower case: `com.example.transfer-file`.
    public var service: String
    /// One to four numbers with dots between: `1.0.0.0`.
    public var version: String
    /// A letter, and up to 63 letters, digits and underscores.
    public var name: String

    /// AppKinetics' request to come to the front of the screen, which every provider has: ``ServiceClient/bringToFront(_:)``.
    public static let frontRequest = ServiceMethod(
        RequestHeader.frontService, RequestHeader.frontVersion, RequestHeader.frontMethod)

    /// Makes a name; whether it can be one is looked at where it is used.
    public init(_ service: String, _ version: String, _ name: String) {
        self.service = service
        self.version = version
        self.name = name
    }
}

/// An install of an app that requests come from or go to.
public struct ServiceApplication: Hashable, Sendable {
    /// The app, named like a bundle identifier.
    public var app: String
    /// The install; nil, where a provider is looked for: the one that is connected, or was last seen.
    public var device: String?

    /// - Parameters:
    ///   - app: The app.
    ///   - device: Nil for any install of the app; a request goes to one of them.
    public init(app: String, device: String? = nil) {
        self.app = app
        self.device = device
    }

    init(_ peer: ServicePeer) { self.init(app: peer.app, device: peer.device) }
}

/// Who should come to the front of the screen. It is reported to the other side, and nothing is done about it.
public enum ForegroundPreference: String, Sendable {
    case preferMe
    case preferPeer
    case none
}

/// An app that offers services, as the server found it.
public struct FoundProvider: Hashable, Sendable {
    /// Where requests are sent.
    public var application: ServiceApplication
    /// As the app names itself.
    public var name: String
    /// Of the app.
    public var version: String
    /// Whether it was connected.
    public var isLive: Bool
    /// Its services, with their versions.
    public var services: [Service]
    /// A user's device, or a server.
    public var type: Kind
    /// Where a server is in its cluster.
    public var server: Server?
    /// Of its picture: another one has another name. ``ServiceClient/icon(of:)`` has the picture.
    public var icon: String?
    /// Of the identity that the server says it has: compare it with ``ServiceProvider/fingerprint`` of the other.
    public var fingerprint: String

    /// One of them.
    public struct Service: Hashable, Sendable {
        public var id: String
        public var version: String
    }

    /// What provides.
    public enum Kind: String, Sendable {
        /// An app on a device of a user.
        case application
        /// A device that the operator made a server, for all users.
        case server
    }

    /// One of a cluster, as the operator says.
    public struct Server: Hashable, Sendable {
        /// Where else it can be reached; requests of services need not know it.
        public var host: String?
        public var port: Int?
        /// 1 is asked first; among equals chance decides.
        public var priority: Int
    }
}

/// A request, as its provider sees it.
public struct ServiceRequest: Sendable {
    /// The same each time that it is handled.
    public let id: String
    public let consumer: ServiceApplication
    public let method: ServiceMethod
    public let parameters: ServiceValue
    /// The paths of its files, which are the app's own.
    public let attachments: [String]
    public let foreground: ForegroundPreference
    /// Whose device asks, where this provider is a server: the word of the Carillon server, of which the consumer's seal says nothing.
    public let user: String?
    /// Until when it can be answered, by the server's clock.
    public let deadline: Date
}

/// What a provider answers, or a consumer is answered.
public struct ServiceReply: Hashable, Sendable {
    public var value: ServiceValue
    /// The paths of its files.
    public var attachments: [String]

    /// - Parameters:
    ///   - value: What is answered; null where there is nothing to say.
    ///   - attachments: The paths of files; they are read before the reply is sent, and may be removed after
    ///     ``ServiceProviderEvent/didFinishSending(to:attachments:id:)``.
    public init(_ value: ServiceValue = .null, attachments: [String] = []) {
        self.value = value
        self.attachments = attachments
    }
}
