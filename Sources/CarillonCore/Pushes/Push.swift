package import CarillonWire

/// What a push is for, as the store numbers it.
package enum PushKind: Int, CaseIterable, Sendable {
    /// Wakes the app, for all that waits.
    case wake = 0
    /// Shows an alert, for one message.
    case alert = 1
    /// Shows what a subscription shows that fired.
    case trigger = 2
    /// The same, whatever was acknowledged before.
    case unconditional = 3

    /// It is for one envelope, and goes with it.
    package var isOfOneEnvelope: Bool { self != .wake }

    /// Whether the push has a copy of its envelope, and is sent even if the envelope was acknowledged.
    package var hasCopy: Bool { self == .unconditional }
}

/// Where a push stands, as the store numbers it.
package enum PushState: Int, CaseIterable, Sendable {
    /// Decided, and not sent yet; also while it is tried again.
    case scheduled = 0
    /// With the vendor's service, or on its way there.
    case leased = 1
    /// The vendor's service took it. What becomes of it then it tells nobody.
    case handed = 2
    /// The vendor's service refused it, and it is not tried again.
    case rejected = 3
    /// What it was for does not wait any more.
    case cancelled = 4
    /// Its time was over before it could be sent.
    case expired = 5
    /// The service says that it is wrong, which is the server's fault or the operator's: it waits until somebody looks.
    case parked = 6

    /// Whether it is over. What is over is kept for a while, for those who ask.
    package var isFinal: Bool { self != .scheduled && self != .leased && self != .parked }
}

/// A push that is to be sent now, and may be by nobody else until its lease ends.
package struct LeasedPush: Equatable, Sendable {
    package enum Content: Equatable, Sendable {
        case wake
        /// For a message, or a subscription that fired. `badge`: how many alerts the device was sent since it reset the number, this one included.
        case alert(Envelope, topic: String?, badge: Int)
    }

    package var lease: WorkLease
    /// The same at each attempt, so that the vendor's service may see that it is one push.
    package var id: Bytes16
    package var kind: PushKind
    package var device: DeviceSerial
    package var queue: PushQueue
    package var token: PushToken
    /// Of the device's address, when it was leased.
    package var addressRevision: Int64
    /// This one included.
    package var attempt: Int
    /// Whether the token was refused in the other environment already.
    package var isElsewhere: Bool
    package var expiresAt: Timestamp
    package var content: Content
    /// Whether the texts of its alert are shortened so that its payload fits.
    package var isShortened: Bool
    /// Which of its push queue's credentials it is sent with: answers to earlier ones say nothing of the push queue.
    package var generation = 0

    package init(
        lease: WorkLease, id: Bytes16, kind: PushKind, device: DeviceSerial, queue: PushQueue, token: PushToken,
        addressRevision: Int64, attempt: Int, isElsewhere: Bool, expiresAt: Timestamp, content: Content,
        isShortened: Bool = false
    ) {
        self.lease = lease
        self.id = id
        self.kind = kind
        self.device = device
        self.queue = queue
        self.token = token
        self.addressRevision = addressRevision
        self.attempt = attempt
        self.isElsewhere = isElsewhere
        self.expiresAt = expiresAt
        self.content = content
        self.isShortened = isShortened
    }

    /// Longer than the vendor's service may take.
    package static let leaseSeconds: Int64 = 60
}

/// What is known of a push, for those who ask about a message or look at a device.
package struct PushRecord: Equatable, Sendable {
    package enum Standing: Equatable, Sendable {
        case state(PushState)
        /// The device is suspended: it is pushed to when it registers again, or an operator resumes it.
        case suspended
    }

    package var serial: Int64?
    package var kind: PushKind
    /// Nil while the device has no token.
    package var queue: PushQueue?
    package var standing: Standing
    /// Since when.
    package var at: Timestamp
    /// When it is tried next.
    package var dueAt: Timestamp?
    /// Known once it was decided.
    package var id: Bytes16?
    package var reason: String?
    /// Whether the texts of its alert are shortened.
    package var isShortened: Bool

    package init(
        serial: Int64? = nil, kind: PushKind, queue: PushQueue?, standing: Standing, at: Timestamp, dueAt: Timestamp? = nil,
        id: Bytes16? = nil, reason: String? = nil, isShortened: Bool = false
    ) {
        self.serial = serial
        self.kind = kind
        self.queue = queue
        self.standing = standing
        self.at = at
        self.dueAt = dueAt
        self.id = id
        self.reason = reason
        self.isShortened = isShortened
    }
}
