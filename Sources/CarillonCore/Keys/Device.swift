package import CarillonWire

/// One installation of one app, as the store has it.
package struct Device: Equatable, Sendable {
    package var serial: DeviceSerial
    package var id: DeviceID
    package var app: AppSerial
    package var appID: AppID
    package var credentialHash: SecretHash
    package var createdAt: Timestamp
    /// Whether the device never registered, and is known by its user agent identifier only.
    package var isAnonymous: Bool
    /// The time of its last connection, rounded to the hour. It is stored for anonymous devices.
    package var seenAt: Timestamp

    package init(
        serial: DeviceSerial, id: DeviceID, app: AppSerial, appID: AppID, credentialHash: SecretHash,
        createdAt: Timestamp, isAnonymous: Bool, seenAt: Timestamp
    ) {
        self.serial = serial
        self.id = id
        self.app = app
        self.appID = appID
        self.credentialHash = credentialHash
        self.createdAt = createdAt
        self.isAnonymous = isAnonymous
        self.seenAt = seenAt
    }
}
