/// A push whose time has come, or whose lease ended.
package struct DuePush: Equatable, Sendable {
    package var serial: Int64
    package var device: DeviceSerial
    package var kind: PushKind
    package var lane: PushLane
    package var expiresAt: Timestamp
    package var attempts: Int
    package var fence: Int64
    /// The number on the app's icon; nil until the push was leased once.
    package var badge: Int?
    /// Nil if the device cannot be pushed to, or its app was deleted.
    package var address: PushAddress?

    package init(
        serial: Int64, device: DeviceSerial, kind: PushKind, lane: PushLane, expiresAt: Timestamp, attempts: Int = 0,
        fence: Int64 = 0, badge: Int? = nil, address: PushAddress?
    ) {
        self.serial = serial
        self.device = device
        self.kind = kind
        self.lane = lane
        self.expiresAt = expiresAt
        self.attempts = attempts
        self.fence = fence
        self.badge = badge
        self.address = address
    }
}

/// What is known when a push is leased. Nil if it was not read.
package struct LeaseFacts: Equatable, Sendable {
    package var hasDevice: Bool?
    package var hasAlertText: Bool?
    /// Whether the envelope of an alert is there.
    package var hasEnvelope: Bool?
    /// Whether the alert counts in the number on the app's icon. Known if the envelope is there.
    package var countsBadge = false
    /// Whether an envelope waits that the device is woken for.
    package var isWaking: Bool?

    package init() {}
}

/// What must be known to end a lease, besides what the end says of its push.
package struct EndFacts: Equatable, Sendable {
    package var isRegistrationRead = false
    /// Nil if it was not read, or there is none.
    package var registration: DeviceRegistration?

    package init() {}
}

/// A push of a device that was not accepted: that waits, is under way, is parked or was rejected.
package struct UnacceptedPush: Equatable, Sendable {
    package var serial: Int64
    package var kind: PushKind
    package var state: PushState
    package var lane: Int64
    package var dueAt: Timestamp?
    package var expiresAt: Timestamp
    /// Whether the vendor's service gave a reason why it was not accepted.
    package var hasReason: Bool
    package var awaitsAddress: Bool
    /// Whether the envelope of an alert waits.
    package var hasEnvelope: Bool

    package init(
        serial: Int64, kind: PushKind, state: PushState, lane: Int64, dueAt: Timestamp?, expiresAt: Timestamp,
        hasReason: Bool = false, awaitsAddress: Bool = false, hasEnvelope: Bool = false
    ) {
        self.serial = serial
        self.kind = kind
        self.state = state
        self.lane = lane
        self.dueAt = dueAt
        self.expiresAt = expiresAt
        self.hasReason = hasReason
        self.awaitsAddress = awaitsAddress
        self.hasEnvelope = hasEnvelope
    }
}

extension Envelope {
    /// Whether the alert for it counts in the number on the app's icon.
    package var countsBadge: Bool {
        if case .fired(_, let countsBadge) = kind { countsBadge } else { true }
    }
}
