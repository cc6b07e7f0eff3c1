package import CarillonWire

/// An origin within the inbox of one device.
package struct DeviceOrigin: Hashable, Sendable {
    package var device: DeviceSerial
    package var origin: OriginKey

    package init(_ device: DeviceSerial, _ origin: OriginKey) {
        self.device = device
        self.origin = origin
    }
}

/// One collapse key of an origin within the inbox of one device.
package struct TopicKey: Hashable, Sendable {
    package var origin: DeviceOrigin
    package var topic: String

    package init(_ origin: DeviceOrigin, _ topic: String) {
        self.origin = origin
        self.topic = topic
    }
}

/// The waiting envelopes of one consumer in the inbox of a device.
package struct ConsumerQuotaKey: Hashable, Sendable {
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

/// The envelopes that end in an inbox when an origin ends.
package struct OriginContents: Equatable, Sendable {
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

    /// The number of these envelopes that leave an outcome.
    var outcomes: Int { kinds.reduce(0) { $1.key.behaviour.keepsOutcome ? $0 + $1.value : $0 } }
}

/// The facts that ``InboxRules`` must read from the store.
package struct InboxQuestions: Equatable, Sendable {
    /// The origins of which to read whether they are open.
    package var origins: Set<OriginKey> = []
    /// The origins of which to read the envelopes that end with them.
    package var originContents: Set<DeviceOrigin> = []
    /// The positions whose rows to read.
    package var rows: Set<Int64> = []
    /// The collapse keys whose waiting envelopes to read, each with its row.
    package var topics: Set<TopicKey> = []
    package var claims: Set<ClaimKey> = []
    package var waiting: Set<DeviceSerial> = []
    /// The devices that an envelope wakes. No fact is required of them: the store can read the wake of such a device together
    /// with its inbox.
    package var woken: Set<DeviceSerial> = []
    package var outcomes: Set<DeviceSerial> = []
    package var keys: Set<DeviceSerial> = []
    /// The devices whose rows to read that wait no longer than until this time.
    package var overdue: [DeviceSerial: Timestamp] = [:]
    /// The consumers whose waiting envelopes to count, except envelopes that expire by this time.
    package var consumers: [ConsumerQuotaKey: Timestamp] = [:]
    /// The devices of which to read the inbox, and the origins that were made for the device's user.
    package var inboxes: Set<DeviceSerial> = []
    /// The effects of which to read whether they are valid.
    package var effects: Set<Effect> = []

    package init() {}

    package var isEmpty: Bool { self == InboxQuestions() }
}

/// The facts from the store. If a fact was requested and is missing here, it does not exist.
package struct InboxFacts: Equatable, Sendable {
    package var origins: Set<OriginKey> = []
    /// Origins that are closed, and whose device is not notified yet.
    package var closedOrigins: Set<OriginKey> = []
    package var originContents: [DeviceOrigin: OriginContents] = [:]
    package var rows: [Int64: InboxRow] = [:]
    package var topics: [TopicKey: Int64] = [:]
    package var claims: [ClaimKey: UsedClaim] = [:]
    package var usage: [DeviceSerial: InboxUsage] = [:]
    package var overdue: [DeviceSerial: [InboxRow]] = [:]
    package var consumers: [ConsumerQuotaKey: InboxUsage.Waiting] = [:]
    package var inboxes: [DeviceSerial: [InboxRow]] = [:]
    /// Origins that were made for the user of their device.
    package var originsOfUsers: Set<OriginKey> = []
    /// The effects that are still valid.
    package var effects: Set<Effect> = []

    package init() {}
}
