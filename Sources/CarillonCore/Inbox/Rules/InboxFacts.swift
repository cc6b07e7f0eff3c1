package import CarillonWire

/// An origin, as far as it is in one device's inbox.
package struct DeviceOrigin: Hashable, Sendable {
    package var device: DeviceSerial
    package var origin: OriginKey

    package init(_ device: DeviceSerial, _ origin: OriginKey) {
        self.device = device
        self.origin = origin
    }
}

/// One topic of it.
package struct TopicKey: Hashable, Sendable {
    package var origin: DeviceOrigin
    package var topic: String

    package init(_ origin: DeviceOrigin, _ topic: String) {
        self.origin = origin
        self.topic = topic
    }
}

/// What waits in the inbox of a device on behalf of one consumer.
package struct ShareKey: Hashable, Sendable {
    package var device: DeviceSerial
    package var consumer: DeviceSerial

    package init(_ device: DeviceSerial, of consumer: DeviceSerial) {
        self.device = device
        self.consumer = consumer
    }
}

/// One `Idempotency-Key` of one origin.
package struct ClaimKey: Hashable, Sendable {
    package var origin: OriginKey
    package var keyHash: [UInt8]

    package init(origin: OriginKey, keyHash: [UInt8]) {
        self.origin = origin
        self.keyHash = keyHash
    }
}

/// An `Idempotency-Key` and the message that was made with it.
package struct UsedClaim: Equatable, Sendable {
    package var fingerprint: [UInt8]
    package var validUntil: Timestamp
    package var id: MessageID
    package var device: DeviceSerial
    package var acceptedAt: Timestamp
    package var expiresAt: Timestamp

    package init(
        fingerprint: [UInt8], validUntil: Timestamp, id: MessageID, device: DeviceSerial, acceptedAt: Timestamp,
        expiresAt: Timestamp
    ) {
        self.fingerprint = fingerprint
        self.validUntil = validUntil
        self.id = id
        self.device = device
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
    }
}

/// What ends in an inbox when an origin does.
package struct OriginHolding: Equatable, Sendable {
    package private(set) var kinds: [EnvelopeKind: Int] = [:]
    package private(set) var waiting = InboxUsage.Waiting()

    package init() {}

    package mutating func add(_ row: InboxRow) { change(row, by: 1) }
    mutating func remove(_ row: InboxRow) { change(row, by: -1) }

    private mutating func change(_ row: InboxRow, by count: Int) {
        kinds[row.kind, default: 0] += count
        waiting.envelopes += count
        waiting.bytes += count * row.byteCount
    }

    /// How many of them leave an outcome.
    var outcomes: Int { kinds.reduce(0) { $1.key.behaviour.keepsOutcome ? $0 + $1.value : $0 } }
}

/// What ``InboxRules`` must know of the store.
package struct InboxQuestions: Equatable, Sendable {
    /// Is it open?
    package var origins: Set<OriginKey> = []
    /// What ends with it?
    package var holdings: Set<DeviceOrigin> = []
    /// What stands at the position?
    package var rows: Set<Int64> = []
    /// Which envelope of the topic waits? Its row is wanted as well.
    package var topics: Set<TopicKey> = []
    package var claims: Set<ClaimKey> = []
    package var waiting: Set<DeviceSerial> = []
    /// The devices that an envelope wakes. This is no question: it allows the store to read the wake of such a device
    /// together with its inbox.
    package var woken: Set<DeviceSerial> = []
    package var outcomes: Set<DeviceSerial> = []
    package var keys: Set<DeviceSerial> = []
    /// Which rows of the device wait no longer than until this moment?
    package var overdue: [DeviceSerial: Timestamp] = [:]
    /// How much waits on behalf of the consumer, apart from what expires by this moment?
    package var shares: [ShareKey: Timestamp] = [:]
    /// What waits in the inbox, and which origins were made for the device's user?
    package var inboxes: Set<DeviceSerial> = []
    /// Does it count still?
    package var effects: Set<Effect> = []

    package init() {}

    package var isEmpty: Bool { self == InboxQuestions() }
}

/// What the store answered. What was asked for and is missing here is not there.
package struct InboxFacts: Equatable, Sendable {
    package var origins: Set<OriginKey> = []
    /// Origins that are closed, and whose device was not notified yet.
    package var closedOrigins: Set<OriginKey> = []
    package var holdings: [DeviceOrigin: OriginHolding] = [:]
    package var rows: [Int64: InboxRow] = [:]
    package var topics: [TopicKey: Int64] = [:]
    package var claims: [ClaimKey: UsedClaim] = [:]
    package var usage: [DeviceSerial: InboxUsage] = [:]
    package var overdue: [DeviceSerial: [InboxRow]] = [:]
    package var shares: [ShareKey: InboxUsage.Waiting] = [:]
    package var inboxes: [DeviceSerial: [InboxRow]] = [:]
    /// Origins that were made for the user of their device.
    package var originsOfUsers: Set<OriginKey> = []
    /// The effects that still count.
    package var effects: Set<Effect> = []

    package init() {}
}
