import CarillonBasics
package import CarillonWire
import Crypto

/// A service in a version that a device offers to other devices.
package struct ServiceOffer: Hashable, Sendable {
    package var service: ServiceID
    package var version: ServiceVersion

    package init(_ service: ServiceID, _ version: ServiceVersion) {
        self.service = service
        self.version = version
    }
}

/// A device that other devices can call.
package struct ServiceProvider: Equatable, Sendable {
    /// The description that the provider reports.
    package struct Profile: Equatable, Sendable {
        package var name: String
        package var version: String
        package var offers: [ServiceOffer]
        package var keys: KeyBundle
        package var icon: ServiceIcon?
        /// The device's own name of this profile. Lookups of providers do not read it, because it concerns only the provider.
        package var revision: String?

        package static let mostOffers = OfferLimits.services
        package static let nameBytes = OfferLimits.nameBytes
        package static let versionBytes = OfferLimits.versionBytes

        package init(
            name: String, version: String, offers: [ServiceOffer], keys: KeyBundle, icon: ServiceIcon? = nil,
            revision: String? = nil
        ) {
            self.name = name
            self.version = version
            self.offers = offers
            self.keys = keys
            self.icon = icon
            self.revision = revision
        }
    }

    package var device: DeviceSerial
    package var id: DeviceID
    package var app: AppSerial
    package var appID: AppID
    /// The profile. Only the name of its icon is read.
    package var profile: Profile
    /// The time at which the device was last seen, accurate to a day.
    package var seenAt: Timestamp
    /// The place in the app's cluster of a backend device; nil for a user's device.
    package var cluster: ClusterPlace?
    /// The user of the device.
    package var user: UserID?

    package init(
        device: DeviceSerial, id: DeviceID, app: AppSerial, appID: AppID, profile: Profile, seenAt: Timestamp,
        cluster: ClusterPlace? = nil, user: UserID? = nil
    ) {
        self.device = device
        self.id = id
        self.app = app
        self.appID = appID
        self.profile = profile
        self.seenAt = seenAt
        self.cluster = cluster
        self.user = user
    }

    package enum Kind: String, CaseIterable, Sendable {
        case application
        case server
    }

    package var peer: ServicePeer { ServicePeer(app: appID.text, device: id.description) }
}

/// Selects providers.
package struct ServiceQuery: Equatable, Sendable {
    package var service: ServiceID?
    package var version: ServiceVersion?
    package var app: AppID?
    package var device: DeviceID?
    package var kind: ServiceProvider.Kind?
    /// The user whose devices a backend device looks for. Other devices find the devices of their own user.
    package var user: UserID?

    package init(
        service: ServiceID? = nil, version: ServiceVersion? = nil, app: AppID? = nil, device: DeviceID? = nil,
        kind: ServiceProvider.Kind? = nil, user: UserID? = nil
    ) {
        self.service = service
        self.version = version
        self.app = app
        self.device = device
        self.kind = kind
        self.user = user
    }
}

/// The providers that a device can call.
package struct ServiceReach: Equatable, Sendable {
    /// The kind of caller: a user's device or a backend device.
    package enum Caller: Equatable, Sendable {
        case user(UserID)
        case server

        package var user: UserID? {
            if case .user(let user) = self { user } else { nil }
        }
    }

    package var caller: Caller
    package var providers: [ServiceProvider]

    package init(caller: Caller, providers: [ServiceProvider]) {
        self.caller = caller
        self.providers = providers
    }
}

/// The place of a backend device in its app's cluster, as the operator sets it.
package struct ClusterPlace: Equatable, Sendable {
    /// Another address of the backend. It is reported to callers, and the server never connects to it.
    package var host: String?
    package var port: Int?
    /// The priority. Callers try 1 first. The order of equal priorities is random.
    package var priority: Int

    package static let priorities = 1...1000
    package static let mostOfApp = 32

    package init(host: String? = nil, port: Int? = nil, priority: Int = 1) {
        self.host = host
        self.port = port
        self.priority = priority
    }
}

/// The icon of an app: a PNG image (RFC 2083).
package struct ServiceIcon: Equatable, Sendable {
    /// The name, which is derived from the bytes.
    package var name: String
    /// The image; empty if only the name was read.
    package var bytes: [UInt8]

    package static let mostBytes = OfferLimits.iconBytes

    package init(name: String, bytes: [UInt8] = []) {
        self.name = name
        self.bytes = bytes
    }

    /// Returns nil if the bytes are not a PNG image, or exceed the limit.
    package init?(png bytes: [UInt8]) {
        guard bytes.count <= Self.mostBytes, OfferLimits.isPNG(bytes) else { return nil }
        self.init(name: Hexadecimal.encode(Array(SHA256.hash(data: bytes)).prefix(8)), bytes: bytes)
    }
}

extension Device {
    package var peer: ServicePeer { ServicePeer(app: appID.text, device: id.description) }
}
