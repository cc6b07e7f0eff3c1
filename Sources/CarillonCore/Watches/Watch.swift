package import CarillonWire

/// A backend's registration on one of its channel tokens: a ping address, and an address to call when the channel ends.
package struct Watch: Equatable, Sendable {
    package var serial: WatchSerial
    /// The number of changes by the backend. Results under an earlier revision do not count.
    package var revision: Int64
    package var channel: ChannelSerial
    package var device: DeviceSerial
    package var app: AppSerial
    package var channelID: ChannelID
    package var ping: Ping?
    package var disconnectAddress: CallAddress?
    package var sealed: Sealed
    package var machine: PingMachine
    package var lastPing: LastPing?
    /// Nil without a ping address.
    package var dueAt: Timestamp?
    package var createdAt: Timestamp

    package init(
        serial: WatchSerial, revision: Int64, channel: ChannelSerial, device: DeviceSerial, app: AppSerial,
        channelID: ChannelID, ping: Ping?, disconnectAddress: CallAddress?, sealed: Sealed, machine: PingMachine,
        lastPing: LastPing?, dueAt: Timestamp?, createdAt: Timestamp
    ) {
        self.serial = serial
        self.revision = revision
        self.channel = channel
        self.device = device
        self.app = app
        self.channelID = channelID
        self.ping = ping
        self.disconnectAddress = disconnectAddress
        self.sealed = sealed
        self.machine = machine
        self.lastPing = lastPing
        self.dueAt = dueAt
        self.createdAt = createdAt
    }

    package struct Ping: Equatable, Sendable {
        package var address: CallAddress
        package var intervalSeconds: Int
        package init(address: CallAddress, intervalSeconds: Int) {
            self.address = address
            self.intervalSeconds = intervalSeconds
        }
    }

    /// Secrets that are sealed with the server's token keys: see ``SecretSealer``.
    package struct Sealed: Equatable, Sendable {
        package var secret: [UInt8]
        package var token: [UInt8]
        package init(secret: [UInt8], token: [UInt8]) {
            self.secret = secret
            self.token = token
        }
    }

    package struct LastPing: Equatable, Sendable {
        package var at: Timestamp
        /// Nil if the backend answered correctly.
        package var failure: PingFailure?
        package var detail: String?
        package init(at: Timestamp, failure: PingFailure?, detail: String?) {
            self.at = at
            self.failure = failure
            self.detail = detail
        }
    }
}

/// The number of a watch in the store. A number is never used again.
package struct WatchSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
