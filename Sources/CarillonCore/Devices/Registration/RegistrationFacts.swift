package import CarillonWire

/// What must be known of a device to change its registration.
package struct RegistrationFacts: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    package var createdAt: Timestamp
    /// Nil of a device that said nothing yet.
    package var stored: DeviceRegistration?
    /// Nil until it is asked for.
    package var token: TokenFacts?

    package init(device: DeviceSerial, app: AppSerial, createdAt: Timestamp, stored: DeviceRegistration?) {
        self.device = device
        self.app = app
        self.createdAt = createdAt
        self.stored = stored
    }

    /// Of a device that said nothing, what it has from the beginning.
    package var current: DeviceRegistration { stored ?? DeviceRegistration(device: device, at: createdAt) }
}

/// What must be known of a push token that a device presents.
package struct TokenFacts: Equatable, Sendable {
    /// The device of the app that has the token.
    package var holder: DeviceRegistration?
    /// How often the token was taken until the last device that had it released it.
    package var released: RegistrationRules.Takings?

    package init(holder: DeviceRegistration? = nil, released: RegistrationRules.Takings? = nil) {
        self.holder = holder
        self.released = released
    }
}

/// What must be known to store a device that registers.
package struct NewDeviceFacts: Equatable, Sendable {
    package struct App: Equatable, Sendable {
        package var serial: AppSerial
        /// The number of devices of the app.
        package var devices: Int
        /// Whether the key with which the device registers is there and not revoked.
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
    /// The registration of the known device. Nil if the device says nothing now, or said nothing before.
    package var stored: DeviceRegistration?
    /// What is known of the push token that the device says now. Empty if the device says none.
    package var token: TokenFacts
    /// The number of devices of the address, or the limit if there are more. Nil until it is asked for.
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

/// A push token in whatever environment.
package struct PlatformToken: Equatable, Sendable {
    package var platform: PushPlatform
    package var token: PushToken

    package init(platform: PushPlatform, token: PushToken) {
        self.platform = platform
        self.token = token
    }
}

/// What must be known to remove a device.
package struct DeviceEndFacts: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    /// The number of devices of the app.
    package var devicesOfApp: Int
    package var seenAt: Timestamp
    /// The counter of served seconds when the device was last seen.
    package var seenServed: Int64
    /// The push token of the device, and how often it was taken.
    package var token: PlatformToken?
    package var takings: RegistrationRules.Takings

    package init(
        device: DeviceSerial, app: AppSerial, devicesOfApp: Int, seenAt: Timestamp, seenServed: Int64,
        token: PlatformToken?, takings: RegistrationRules.Takings
    ) {
        self.device = device
        self.app = app
        self.devicesOfApp = devicesOfApp
        self.seenAt = seenAt
        self.seenServed = seenServed
        self.token = token
        self.takings = takings
    }
}

/// What must be known to open a channel.
package struct OpenChannelFacts: Equatable, Sendable {
    package var app: AppSerial
    /// The channel of this name.
    package var channel: PushChannel?
    /// Whether the channel was opened for a user to whom the device belongs no more.
    package var isOfFormerUser: Bool
    /// The number of channels of the device. Zero if the channel is there.
    package var channels: Int
    /// Whether the device has a user. False if the channel is there.
    package var hasUser: Bool

    package init(app: AppSerial, channel: PushChannel?, isOfFormerUser: Bool, channels: Int, hasUser: Bool) {
        self.app = app
        self.channel = channel
        self.isOfFormerUser = isOfFormerUser
        self.channels = channels
        self.hasUser = hasUser
    }
}
