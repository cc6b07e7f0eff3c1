package import CarillonWire

/// The facts that a change of a registration needs.
package struct RegistrationFacts: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    package var createdAt: Timestamp
    /// The stored registration; nil if the device has not reported anything yet.
    package var stored: DeviceRegistration?
    /// The facts of the push token; nil until they are requested.
    package var token: TokenFacts?

    package init(device: DeviceSerial, app: AppSerial, createdAt: Timestamp, stored: DeviceRegistration?) {
        self.device = device
        self.app = app
        self.createdAt = createdAt
        self.stored = stored
    }

    /// The stored registration, or the one that a device has before its first report.
    package var current: DeviceRegistration { stored ?? DeviceRegistration(device: device, at: createdAt) }
}

/// The facts of a push token that a device reports.
package struct TokenFacts: Equatable, Sendable {
    /// The device of the app that has the token.
    package var holder: DeviceRegistration?
    /// The number of transfers of the token when the last device that had it released it.
    package var released: RegistrationRules.TokenTransfers?

    package init(holder: DeviceRegistration? = nil, released: RegistrationRules.TokenTransfers? = nil) {
        self.holder = holder
        self.released = released
    }
}

/// The facts that the registration of a device needs.
package struct NewDeviceFacts: Equatable, Sendable {
    package struct App: Equatable, Sendable {
        package var serial: AppSerial
        /// The number of devices of the app.
        package var devices: Int
        /// Whether the key with which the device registers exists and is not revoked.
        package var isKeyInForce: Bool

        package init(serial: AppSerial, devices: Int, isKeyInForce: Bool) {
            self.serial = serial
            self.devices = devices
            self.isKeyInForce = isKeyInForce
        }
    }

    /// Nil if there is no app of this name.
    package var app: App?
    /// The device that registered with the same secret.
    package var known: Device?
    /// The registration of the known device. Nil if the device reports nothing now, or reported nothing before.
    package var stored: DeviceRegistration?
    /// The facts of the push token that the device reports now. Empty if the device reports none.
    package var token: TokenFacts
    /// The number of devices of the address, or the limit if there are more. Nil until it is requested.
    package var devicesOfAddress: Int?

    package init(
        app: App?, known: Device? = nil, stored: DeviceRegistration? = nil, token: TokenFacts = TokenFacts()
    ) {
        self.app = app
        self.known = known
        self.stored = stored
        self.token = token
    }
}

/// A push token, without its environment.
package struct PlatformToken: Equatable, Sendable {
    package var platform: PushPlatform
    package var token: PushToken

    package init(platform: PushPlatform, token: PushToken) {
        self.platform = platform
        self.token = token
    }
}

/// The facts that the removal of a device needs.
package struct DeviceEndFacts: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    /// The number of devices of the app.
    package var devicesOfApp: Int
    package var seenAt: Timestamp
    /// The counter of served seconds when the device was last seen.
    package var seenServed: Int64
    /// The push token of the device. `tokenTransfers` has the number of its transfers.
    package var token: PlatformToken?
    package var tokenTransfers: RegistrationRules.TokenTransfers

    package init(
        device: DeviceSerial, app: AppSerial, devicesOfApp: Int, seenAt: Timestamp, seenServed: Int64,
        token: PlatformToken?, tokenTransfers: RegistrationRules.TokenTransfers
    ) {
        self.device = device
        self.app = app
        self.devicesOfApp = devicesOfApp
        self.seenAt = seenAt
        self.seenServed = seenServed
        self.token = token
        self.tokenTransfers = tokenTransfers
    }
}

/// The facts that the opening of a channel needs.
package struct OpenChannelFacts: Equatable, Sendable {
    package var app: AppSerial
    /// The channel of this name.
    package var channel: PushChannel?
    /// Whether the channel was opened for a former user of the device.
    package var isOfFormerUser: Bool
    /// The number of channels of the device. Zero if the channel exists.
    package var channels: Int
    /// Whether the device has a user. False if the channel exists.
    package var hasUser: Bool

    package init(app: AppSerial, channel: PushChannel?, isOfFormerUser: Bool, channels: Int, hasUser: Bool) {
        self.app = app
        self.channel = channel
        self.isOfFormerUser = isOfFormerUser
        self.channels = channels
        self.hasUser = hasUser
    }
}
