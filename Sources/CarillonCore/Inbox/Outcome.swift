/// The reason why an envelope left the inbox. It is the final state of a message.
package enum Outcome: String, CaseIterable, Sendable {
    /// The app acknowledged the envelope.
    case acknowledged
    /// The device received the envelope and could not use it. The code is the reason.
    case failed
    /// The device does not support this kind of envelope.
    case unsupported
    /// The TTL ended first.
    case expired
    /// A newer message with the same collapse key replaced it.
    case replaced
    /// The sender withdrew it.
    case cancelled
    /// The TTL was 0, and no device received it.
    case dropped
    /// The channel, device or app was removed.
    case gone

    /// Whether the device reported the outcome.
    package var isOfDevice: Bool { self == .acknowledged || self == .failed || self == .unsupported }
}

/// The end of an envelope, with which it leaves the inbox.
package struct FinalOutcome: Equatable, Sendable {
    package var outcome: Outcome
    /// The code that the device reported with the outcome.
    package var code: Int?
    package var at: Timestamp

    package init(_ outcome: Outcome, code: Int? = nil, at: Timestamp) {
        self.outcome = outcome
        self.code = code
        self.at = at
    }
}

/// The state of a message, waiting or final.
package struct MessageRecord: Equatable, Sendable {
    package var device: DeviceSerial
    package var app: AppSerial
    package var acceptedAt: Timestamp
    package var expiresAt: Timestamp
    /// Nil while the message is waiting.
    package var finalOutcome: FinalOutcome?

    package init(
        device: DeviceSerial, app: AppSerial, acceptedAt: Timestamp, expiresAt: Timestamp, finalOutcome: FinalOutcome?
    ) {
        self.device = device
        self.app = app
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.finalOutcome = finalOutcome
    }
}
