import CarillonBasics
package import CarillonWire
import Crypto

/// What a device offers to others.
package struct ServiceOffer: Hashable, Sendable {
    package var service: ServiceID
    package var version: ServiceVersion

    package init(_ service: ServiceID, _ version: ServiceVersion) {
        self.service = service
        self.version = version
    }
}

/// A device that others may call.
package struct ServiceProvider: Equatable, Sendable {
    /// What it says of itself.
    package struct Profile: Equatable, Sendable {
        package var name: String
        package var version: String
        package var offers: [ServiceOffer]
        package var keys: KeyBundle
        package var icon: ServiceIcon?
        /// The device's own name for all of this. It is not read with the rest: whoever looks for a provider is not told of it.
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
    /// Of the icon only the name is read.
    package var profile: Profile
    /// When it was last there, to the day.
    package var seenAt: Timestamp
    /// Its place in its app's cluster; nil of a user's device.
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

/// Which providers are looked for.
package struct ServiceQuery: Equatable, Sendable {
    package var service: ServiceID?
    package var version: ServiceVersion?
    package var app: AppID?
    package var device: DeviceID?
    package var kind: ServiceProvider.Kind?
    /// Whose devices a server looks for. Others find those of their own user.
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

/// Whom a device may call.
package struct ServiceReach: Equatable, Sendable {
    /// Who calls: a user's device, or a server.
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

/// Where a server-type provider is in its app's cluster, as the operator says.
package struct ClusterPlace: Equatable, Sendable {
    /// Where else the server can be reached; told, and never called.
    package var host: String?
    package var port: Int?
    /// 1 is asked first; among equals chance decides.
    package var priority: Int

    package static let priorities = 1...1000
    package static let mostOfApp = 32

    package init(host: String? = nil, port: Int? = nil, priority: Int = 1) {
        self.host = host
        self.port = port
        self.priority = priority
    }
}

/// A picture in PNG (RFC 2083) that stands for an app.
package struct ServiceIcon: Equatable, Sendable {
    /// Of its bytes.
    package var name: String
    /// Empty where only its name was read.
    package var bytes: [UInt8]

    package static let mostBytes = OfferLimits.iconBytes

    package init(name: String, bytes: [UInt8] = []) {
        self.name = name
        self.bytes = bytes
    }

    /// Nil for what is no PNG, or too large.
    package init?(png bytes: [UInt8]) {
        guard bytes.count <= Self.mostBytes, OfferLimits.isPNG(bytes) else { return nil }
        self.init(name: Hexadecimal.encode(Array(SHA256.hash(data: bytes)).prefix(8)), bytes: bytes)
    }
}

extension Device {
    package var peer: ServicePeer { ServicePeer(app: appID.text, device: id.description) }
}
