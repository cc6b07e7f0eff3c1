/// Why an envelope left the inbox: the final truth about a message.
package enum Outcome: String, CaseIterable, Sendable {
    /// The app has it.
    case acknowledged
    /// It reached the device, which could not use it; the code says why.
    case failed
    /// The device does not know this kind of envelope.
    case unsupported
    /// Its TTL ended first.
    case expired
    /// A newer message of the same topic took its place.
    case replaced
    /// Its sender took it back.
    case cancelled
    /// It was to be delivered at once or not at all, and could not be.
    case dropped
    /// Its channel, device or app is gone.
    case gone

    /// Whether it is the device that said so.
    package var isOfDevice: Bool { self == .acknowledged || self == .failed || self == .unsupported }
}

/// An envelope leaving the inbox.
package struct Settlement: Equatable, Sendable {
    package var outcome: Outcome
    /// What the device said beside it.
    package var code: Int?
    package var at: Timestamp

    package init(_ outcome: Outcome, code: Int? = nil, at: Timestamp) {
        self.outcome = outcome
        self.code = code
        self.at = at
    }
}

/// What is known of a message, waiting or final.
package struct MessageRecord: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    package var acceptedAt: Timestamp
    package var expiresAt: Timestamp
    /// Nil while it waits.
    package var settlement: Settlement?

    package init(
        device: DeviceSerial, app: AppSerial, acceptedAt: Timestamp, expiresAt: Timestamp, settlement: Settlement?
    ) {
        self.device = device
        self.app = app
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.settlement = settlement
    }
}
