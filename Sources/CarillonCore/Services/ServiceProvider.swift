package import CarillonWire

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

        package static let mostOffers = 64
        package static let nameBytes = 128
        package static let versionBytes = 64

        package init(name: String, version: String, offers: [ServiceOffer], keys: KeyBundle) {
            self.name = name
            self.version = version
            self.offers = offers
            self.keys = keys
        }
    }

    package var device: DeviceSerial
    package var id: DeviceID
    package var app: AppSerial
    package var appID: AppID
    package var profile: Profile
    /// When it was last there, to the day.
    package var seenAt: Timestamp

    package init(
        device: DeviceSerial, id: DeviceID, app: AppSerial, appID: AppID, profile: Profile, seenAt: Timestamp
    ) {
        self.device = device
        self.id = id
        self.app = app
        self.appID = appID
        self.profile = profile
        self.seenAt = seenAt
    }

    package var peer: ServicePeer { ServicePeer(app: appID.text, device: id.description) }
}

/// Which providers are looked for.
package struct ServiceQuery: Equatable, Sendable {
    package var service: ServiceID?
    package var version: ServiceVersion?
    package var app: AppID?
    package var device: DeviceID?

    package init(
        service: ServiceID? = nil, version: ServiceVersion? = nil, app: AppID? = nil, device: DeviceID? = nil
    ) {
        self.service = service
        self.version = version
        self.app = app
        self.device = device
    }
}

extension Device {
    package var peer: ServicePeer { ServicePeer(app: appID.text, device: id.description) }
}
