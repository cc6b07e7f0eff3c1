package import CarillonWire

/// The facts of an envelope that decisions need: everything except its body.
package struct InboxRow: Equatable, Sendable {
    package var id: MessageID
    package var device: DeviceSerial
    package var app: AppSerial
    package var origin: OriginKey
    package var kind: EnvelopeKind
    package var topic: String?
    package var acceptedAt: Timestamp
    package var expiresAt: Timestamp
    /// See ``Envelope/byteCount``.
    package var byteCount: Int
    /// Nil while the envelope is waiting.
    package var finalOutcome: FinalOutcome?

    package init(
        id: MessageID, device: DeviceSerial, app: AppSerial, origin: OriginKey, kind: EnvelopeKind, topic: String?,
        acceptedAt: Timestamp, expiresAt: Timestamp, byteCount: Int, finalOutcome: FinalOutcome?
    ) {
        self.id = id
        self.device = device
        self.app = app
        self.origin = origin
        self.kind = kind
        self.topic = topic
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.byteCount = byteCount
        self.finalOutcome = finalOutcome
    }

    package init(_ envelope: Envelope, topic: String?) {
        self.init(
            id: envelope.id, device: envelope.device, app: envelope.app, origin: envelope.origin.key,
            kind: envelope.kind.number, topic: topic, acceptedAt: envelope.acceptedAt, expiresAt: envelope.expiresAt,
            byteCount: envelope.byteCount, finalOutcome: nil)
    }

    package var position: Int64 { id.position }

    package var deviceOrigin: DeviceOrigin { DeviceOrigin(device, origin) }

    /// See ``Envelope/isVolatile``.
    package var isVolatile: Bool { expiresAt == acceptedAt }

    /// The time at which waiting ends without a result. The device has some additional time for the result of a message of TTL 0.
    package var waitsUntil: Timestamp {
        isVolatile ? acceptedAt.adding(seconds: Envelope.volatileGraceSeconds) : expiresAt
    }

    /// The settlement when the time is over.
    package var timeOver: FinalOutcome { FinalOutcome(isVolatile ? .dropped : .expired, at: expiresAt) }
}
