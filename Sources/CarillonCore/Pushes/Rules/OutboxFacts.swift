/// A push that is due, or whose lease ended.
package struct DuePush: Equatable, Sendable {
    package var serial: Int64
    package var device: DeviceSerial
    package var kind: PushKind
    package var queue: PushQueue
    package var expiresAt: Timestamp
    package var attempts: Int
    package var fence: Int64
    /// The badge; nil until the push was leased once.
    package var badge: Int?
    /// Nil if the device cannot be pushed to, or its app was deleted.
    package var address: PushAddress?

    package init(
        serial: Int64, device: DeviceSerial, kind: PushKind, queue: PushQueue, expiresAt: Timestamp, attempts: Int = 0,
        fence: Int64 = 0, badge: Int? = nil, address: PushAddress?
    ) {
        self.serial = serial
        self.device = device
        self.kind = kind
        self.queue = queue
        self.expiresAt = expiresAt
        self.attempts = attempts
        self.fence = fence
        self.badge = badge
        self.address = address
    }
}

/// The facts that the lease of a push needs. A fact is nil if it was not read.
package struct LeaseFacts: Equatable, Sendable {
    package var hasDevice: Bool?
    package var hasAlertText: Bool?
    /// Whether the envelope of an alert exists.
    package var hasEnvelope: Bool?
    /// Whether the alert counts in the badge. Read together with the envelope.
    package var countsBadge = false
    /// Whether an envelope that wakes the device waits.
    package var isWaking: Bool?

    package init() {}
}

/// The facts that the end of a lease needs in addition to ``PushEnd``.
package struct EndFacts: Equatable, Sendable {
    package var isRegistrationRead = false
    /// Nil if the registration was not read, or if the device has no registration.
    package var registration: DeviceRegistration?

    package init() {}
}

/// A push of a device that was not accepted: it waits, is under way, is parked or was rejected.
package struct UnacceptedPush: Equatable, Sendable {
    package var serial: Int64
    package var kind: PushKind
    package var state: PushState
    package var queue: Int64
    package var dueAt: Timestamp?
    package var expiresAt: Timestamp
    /// Whether the vendor's service returned a reason for not accepting the push.
    package var hasReason: Bool
    package var awaitsAddress: Bool
    /// Whether the envelope of an alert waits.
    package var hasEnvelope: Bool

    package init(
        serial: Int64, kind: PushKind, state: PushState, queue: Int64, dueAt: Timestamp?, expiresAt: Timestamp,
        hasReason: Bool = false, awaitsAddress: Bool = false, hasEnvelope: Bool = false
    ) {
        self.serial = serial
        self.kind = kind
        self.state = state
        self.queue = queue
        self.dueAt = dueAt
        self.expiresAt = expiresAt
        self.hasReason = hasReason
        self.awaitsAddress = awaitsAddress
        self.hasEnvelope = hasEnvelope
    }
}

extension Envelope {
    /// Whether the alert of the envelope counts in the badge.
    package var countsBadge: Bool {
        if case .fired(_, let countsBadge) = kind { countsBadge } else { true }
    }
}
