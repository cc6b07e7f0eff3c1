package import CarillonWire

/// What a device says of itself. It always says all of it: what is absent is not so.
package struct DeviceProfile: Equatable, Sendable {
    /// Where a vendor's push service finds the device.
    package struct Address: Equatable, Sendable {
        package var platform: PushPlatform
        package var token: PushToken
        package var environment: PushEnvironment

        package init(platform: PushPlatform, token: PushToken, environment: PushEnvironment) {
            self.platform = platform
            self.token = token
            self.environment = environment
        }
    }

    /// The push service of a token: its platform and its environment.
    package struct Service: Equatable, Sendable {
        package var platform: PushPlatform
        package var environment: PushEnvironment

        package init(platform: PushPlatform, environment: PushEnvironment) {
            self.platform = platform
            self.environment = environment
        }
    }

    package var address: Address? {
        didSet { if address != nil { formerService = nil } }
    }
    /// The service of the last token, while the device has none: another device took the token, or the device removed it. The
    /// next token belongs to this service, unless the device names another.
    package var formerService: Service?
    package var appVersion: String?
    package var locale: String?
    package var timeZone: String?
    package var parameters = DeviceParameters.none
    /// The device's own name for all of this. It stays when the server changes something of it by itself.
    package var revision: String?

    package static let longestTextBytes = 64

    package init() {}

    /// The service of the device's token, or of the last one.
    package var service: Service? {
        address.map { Service(platform: $0.platform, environment: $0.environment) } ?? formerService
    }

    /// Removes the token; its platform and its environment stay for the next one.
    package mutating func removeToken() {
        let last = service
        address = nil
        formerService = last
    }

    /// Whether both have one token, in whatever environment.
    func hasToken(of other: DeviceProfile) -> Bool {
        guard let address, let other = other.address else { return false }
        return (address.platform, address.token) == (other.platform, other.token)
    }

    /// - Throws: What is wrong with a text.
    package func check() throws(Refusal) {
        try SaidRevisions.check(revision)
        for (name, text) in [("appVersion", appVersion), ("locale", locale), ("timeZone", timeZone)] {
            guard let text else { continue }
            guard (1...Self.longestTextBytes).contains(text.utf8.count), text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else {
                throw Refusal(
                    .fieldInvalid, "\"\(name)\" must have 1 to \(Self.longestTextBytes) printable ASCII characters.")
            }
        }
    }
}

/// What a device said of itself, and what the server makes of it.
package struct DeviceRegistration: Equatable, Sendable {
    package var device: DeviceSerial
    package var profile = DeviceProfile()
    /// Whose it is, as the app's server signed it; nil of nobody's.
    package var user: UserID?
    package var status = DeviceStatus.registered
    /// Since when.
    package var statusAt: Timestamp
    /// In which environment the device says that its token is, where the vendor's service knew it in the other.
    package var saidEnvironment: PushEnvironment?
    /// Goes up whenever the address changes: an answer of the vendor's about an earlier one says nothing of this.
    package var addressRevision: Int64 = 0
    /// When the device last said that the address is its own, to the day.
    package var confirmedAt: Timestamp
    /// How often the token went from one device to another on the day of the last time, and which day it was.
    package var tokenTransfers = 0
    package var takenOn: Int64 = 0

    package init(device: DeviceSerial, at now: Timestamp) {
        self.device = device
        statusAt = now
        confirmedAt = now
    }

    /// When a change of the status is told to be: later than the one before, also by a clock that was set back.
    func nextStatusAt(_ now: Timestamp) -> Timestamp { max(now, Timestamp(milliseconds: statusAt.milliseconds + 1)) }

    /// The same of a device that said its address since what is stored of it.
    package func confirmed(_ moment: Timestamp?) -> DeviceRegistration {
        var confirmed = self
        confirmed.confirmedAt = max(confirmedAt, moment ?? confirmedAt)
        return confirmed
    }
}
