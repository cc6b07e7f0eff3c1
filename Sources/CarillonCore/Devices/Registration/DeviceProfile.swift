package import CarillonWire

/// The description that a device reports. A report is complete: an absent member is cleared.
package struct DeviceProfile: Equatable, Sendable {
    /// The push token of a device at a vendor's push service.
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
    /// next token belongs to this service, unless the device reports another.
    package var formerService: Service?
    package var appVersion: String?
    package var locale: String?
    package var timeZone: String?
    package var parameters = DeviceParameters.none
    /// The device's own name of this profile. It stays when the server changes the profile.
    package var revision: String?

    package static let longestTextBytes = 64

    package init() {}

    /// The service of the device's token, or of the last one.
    package var service: Service? {
        address.map { Service(platform: $0.platform, environment: $0.environment) } ?? formerService
    }

    /// Removes the token; its platform and its environment are kept for the next token.
    package mutating func removeToken() {
        let last = service
        address = nil
        formerService = last
    }

    /// Whether both profiles have the same token, in any environment.
    func hasToken(of other: DeviceProfile) -> Bool {
        guard let address, let other = other.address else { return false }
        return (address.platform, address.token) == (other.platform, other.token)
    }

    /// - Throws: ``Refusal`` if a text is invalid.
    package func check() throws(Refusal) {
        try ReportedRevisions.check(revision)
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

/// The profile that a device reported, with the state that the server adds.
package struct DeviceRegistration: Equatable, Sendable {
    package var device: DeviceSerial
    package var profile = DeviceProfile()
    /// The user of the device, from a token that the app's backend signed; nil for no user.
    package var user: UserID?
    package var status = DeviceStatus.registered
    /// The time since which the device has the status.
    package var statusAt: Timestamp
    /// The environment that the device reports for its token, if the vendor's service accepted the token in the other
    /// environment.
    package var reportedEnvironment: PushEnvironment?
    /// Increases with each change of the address. An answer of the vendor's service about an earlier revision does not apply to
    /// this one.
    package var addressRevision: Int64 = 0
    /// The time at which the device last confirmed the address, accurate to a day.
    package var confirmedAt: Timestamp
    /// The number of times that the token moved to another device on the day `takenOn`. Days are counted from 1970.
    package var tokenTransfers = 0
    package var takenOn: Int64 = 0

    package init(device: DeviceSerial, at now: Timestamp) {
        self.device = device
        statusAt = now
        confirmedAt = now
    }

    /// Returns the time of a new status. It is later than that of the present status, also if the clock was set back.
    func nextStatusAt(_ now: Timestamp) -> Timestamp { max(now, Timestamp(milliseconds: statusAt.milliseconds + 1)) }

    /// Returns the registration with a confirmation of the address that is later than the stored one.
    package func confirmed(_ moment: Timestamp?) -> DeviceRegistration {
        var confirmed = self
        confirmed.confirmedAt = max(confirmedAt, moment ?? confirmedAt)
        return confirmed
    }
}
