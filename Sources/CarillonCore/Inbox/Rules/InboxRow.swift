package import CarillonWire

/// What must be known of an envelope to decide about it: all but its body.
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
    /// Nil while it waits.
    package var settlement: Settlement?

    package init(
        id: MessageID, device: DeviceSerial, app: AppSerial, origin: OriginKey, kind: EnvelopeKind, topic: String?,
        acceptedAt: Timestamp, expiresAt: Timestamp, byteCount: Int, settlement: Settlement?
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
        self.settlement = settlement
    }

    package init(_ envelope: Envelope, topic: String?) {
        self.init(
            id: envelope.id, device: envelope.device, app: envelope.app, origin: envelope.origin.key,
            kind: envelope.kind.number, topic: topic, acceptedAt: envelope.acceptedAt, expiresAt: envelope.expiresAt,
            byteCount: envelope.byteCount, settlement: nil)
    }

    package var position: Int64 { id.position }

    package var deviceOrigin: DeviceOrigin { DeviceOrigin(device, origin) }

    /// See ``Envelope/isVolatile``.
    package var isVolatile: Bool { expiresAt == acceptedAt }

    /// When waiting ends by itself. A message of TTL 0 has a while to be answered for.
    package var waitsUntil: Timestamp {
        isVolatile ? acceptedAt.adding(seconds: Envelope.volatileGraceSeconds) : expiresAt
    }

    /// How it ends when its time is over.
    package var timeOver: Settlement { Settlement(isVolatile ? .dropped : .expired, at: expiresAt) }
}
