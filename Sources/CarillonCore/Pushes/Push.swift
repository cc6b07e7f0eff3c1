package import CarillonWire

/// The purpose of a push, with its number in the store.
package enum PushKind: Int, CaseIterable, Sendable {
    /// Wakes the app to fetch everything that is waiting.
    case wake = 0
    /// Shows the alert of one message.
    case alert = 1
    /// Shows the alert of an item subscription that fired.
    case trigger = 2
    /// Shows the alert of an item subscription that fired, even if the envelope was acknowledged before.
    case unconditional = 3

    /// Whether the push is for one envelope.
    package var isOfOneEnvelope: Bool { self != .wake }

    /// Whether the push has a copy of its envelope, and is sent even if the envelope was acknowledged.
    package var hasCopy: Bool { self == .unconditional }
}

/// The state of a push, with its number in the store.
package enum PushState: Int, CaseIterable, Sendable {
    /// Not sent yet, or waits for a retry.
    case scheduled = 0
    /// Under way to the vendor's service, which has not answered yet.
    case leased = 1
    /// Accepted by the vendor's service, which does not report the delivery to the device.
    case handed = 2
    /// Refused by the vendor's service, and not tried again.
    case rejected = 3
    /// The envelope of the push does not wait any more.
    case cancelled = 4
    /// Expired before it could be sent.
    case expired = 5
    /// Refused as invalid, because of a fault of the server or the operator. It waits until an operator acts.
    case parked = 6

    /// Whether the push is finished. A finished push is kept for a while, so that its state can be read.
    package var isFinal: Bool { self != .scheduled && self != .leased && self != .parked }

    /// The result of an attempt in ``ServerMetric/pushes``, if this is the state after the attempt.
    package var result: String { self == .scheduled ? "retried" : "\(self)" }
}

/// A push that must be sent now. No other caller can lease it until its lease ends.
package struct LeasedPush: Equatable, Sendable {
    package enum Content: Equatable, Sendable {
        case wake
        /// For a message, or an item subscription that fired. `badge`: the number of alerts sent to the device since it reset the
        /// badge, including this one.
        case alert(Envelope, topic: String?, badge: Int)
    }

    package var lease: WorkLease
    /// The identifier of the push, the same for each attempt, so that the vendor's service can recognise a repetition.
    package var id: Bytes16
    package var kind: PushKind
    package var device: DeviceSerial
    package var queue: PushQueue
    package var token: PushToken
    /// The revision of the device's address at the time of the lease.
    package var addressRevision: Int64
    /// The number of attempts, including this one.
    package var attempt: Int
    /// Whether the token was refused already in the other environment.
    package var isElsewhere: Bool
    package var expiresAt: Timestamp
    package var content: Content
    /// Whether the texts of its alert are shortened so that its payload fits.
    package var isShortened: Bool
    /// The number of the push credentials with which the push is sent. Answers to earlier push credentials do not change the push
    /// queue.
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

    /// Longer than the vendor's service can take to answer.
    package static let leaseSeconds: Int64 = 60
}

/// The state of a push, for readers of a message or a device.
package struct PushRecord: Equatable, Sendable {
    package enum Standing: Equatable, Sendable {
        case state(PushState)
        /// The device is suspended. It is sent pushes when it registers again, or when an operator resumes it.
        case suspended
    }

    package var serial: Int64?
    package var kind: PushKind
    /// Nil while the device has no token.
    package var queue: PushQueue?
    package var standing: Standing
    /// The time since which the push has this state.
    package var at: Timestamp
    /// The time of the next attempt.
    package var dueAt: Timestamp?
    /// Nil until the push is decided.
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
