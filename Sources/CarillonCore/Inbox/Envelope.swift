package import CarillonWire

/// One entry of an inbox.
package struct Envelope: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        case message(Content)
        case channelClosed
        case channelError(code: Int)
        case pingFailed(PingFailure)
        case recovered
        /// The status of the device, since the time at which the envelope was accepted.
        case deviceStatus(DeviceStatus)
        /// An item subscription fired. The body is that of a ``FiredNotification``.
        case fired(body: [UInt8], countsBadge: Bool)
        case update(UpdateCopy)
        /// An audience update that the device had received was withdrawn. `entry`: the entry of the update.
        case retraction(entry: Int)
        /// An event of a service request. The body is that of a ``ServiceEvent``.
        case service(ServicePart, body: [UInt8])
    }

    package enum ServicePart: Sendable {
        case request
        case reply
        case notice
    }

    /// The copy of an audience update for one device.
    package struct UpdateCopy: Equatable, Sendable {
        package var body: [UInt8]
        package var shared: SharedContentID?
        package var entry: Int
        package var attempt: Int

        package init(body: [UInt8], shared: SharedContentID?, entry: Int, attempt: Int) {
            self.body = body
            self.shared = shared
            self.entry = entry
            self.attempt = attempt
        }
    }

    package struct Content: Equatable, Sendable {
        package var body: [UInt8]
        package var coding: ContentCoding?
        /// The shared body, which is stored once for many inboxes; nil if the body belongs to the envelope.
        package var shared: SharedContentID?

        package init(body: [UInt8], coding: ContentCoding?, shared: SharedContentID? = nil) {
            self.body = body
            self.coding = coding
            self.shared = shared
        }
    }

    package var id: MessageID
    package var device: DeviceSerial
    package var app: AppSerial
    package var origin: Origin
    package var kind: Kind
    package var acceptedAt: Timestamp
    package var expiresAt: Timestamp
    package var urgency: Urgency

    package init(
        id: MessageID, device: DeviceSerial, app: AppSerial, origin: Origin, kind: Kind, acceptedAt: Timestamp,
        expiresAt: Timestamp, urgency: Urgency = .normal
    ) {
        self.id = id
        self.device = device
        self.app = app
        self.origin = origin
        self.kind = kind
        self.acceptedAt = acceptedAt
        self.expiresAt = expiresAt
        self.urgency = urgency
    }

    package var position: Int64 { id.position }

    /// The size of the envelope in windows and in the limit of an inbox. A shared body counts like a body of the envelope,
    /// because it is delivered as often.
    package var byteCount: Int {
        switch kind {
        case .message(let content): Self.overhead + content.body.count
        case .fired(let body, _): Self.overhead + body.count
        case .update(let copy): Self.overhead + copy.body.count
        case .service(_, let body): Self.overhead + body.count
        default: Self.overhead
        }
    }

    package static let overhead = 128

    package var behaviour: EnvelopeKind.Behaviour { kind.number.behaviour }

    /// Whether the TTL is 0: the envelope is delivered to a connection or lost, and never stored.
    package var isVolatile: Bool { expiresAt == acceptedAt }

    /// The number of seconds after which a message of TTL 0 is dropped if the device reports no result.
    package static let volatileGraceSeconds: Int64 = 60

    /// The part of a message of TTL 0 that is stored: everything except its body.
    package var trace: Envelope {
        var trace = self
        if case .message = kind { trace.kind = .message(Content(body: [], coding: nil)) }
        return trace
    }

    package func isExpired(at now: Timestamp) -> Bool { expiresAt <= now }
}

extension Envelope.Kind {
    package var number: EnvelopeKind {
        switch self {
        case .message: .message
        case .channelClosed: .channelClosed
        case .channelError: .channelError
        case .pingFailed: .pingFailed
        case .recovered: .recovered
        case .deviceStatus: .deviceStatus
        case .fired: .fired
        case .update: .update
        case .retraction: .retraction
        case .service(.request, _): .serviceRequest
        case .service(.reply, _): .serviceReply
        case .service(.notice, _): .serviceNotice
        }
    }
}

/// The store's number of a body that many inboxes share.
package struct SharedContentID: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
