package import CarillonWire

/// One change of the inboxes. Many are committed together, in order; each succeeds or fails for itself.
package enum InboxOperation: Equatable, Sendable {
    /// Appends an envelope: it waits from then on. One that tells of a channel's end closes the channel with it.
    case append(Envelope, AppendRules)
    /// Ends a waiting envelope. `device` nil is the sender's side, which may end any message whose identifier it has.
    case settle(MessageID, device: DeviceSerial?, Settlement)
    /// Writes down the outcome of a message that never waited in the store.
    case record(Envelope, AppendRules, Settlement)
    /// Removes a message of TTL 0 that nobody was given: its sender was told, and no row stays behind.
    case forget(MessageID)
    /// The same, of one that never came to the store: what is left of it is that it replaces.
    case replace(Envelope, AppendRules)
    /// Ends a waiting envelope whose time is over.
    case expire(MessageID, at: Timestamp)
    /// Ends an origin in a device's inbox, and what waits of it.
    case end(DeviceOrigin, because: DisconnectReason, at: Timestamp)
    /// The device's user changes: envelopes of the kinds that ``EnvelopeKind/Behaviour/userChange`` names leave the inbox.
    ///
    /// `hadUser`: The device had a user before.
    case changeUser(DeviceSerial, hadUser: Bool, at: Timestamp)
}

extension InboxOperation {
    /// Whose inbox is changed, as far as the operation says so.
    package var device: DeviceSerial? {
        switch self {
        case .append(let envelope, _), .record(let envelope, _, _), .replace(let envelope, _): envelope.device
        case .settle(_, let device, _): device
        case .end(let origin, _, _): origin.device
        case .changeUser(let device, _, _): device
        case .forget, .expire: nil
        }
    }

    /// What the operation takes of the bound of what is queued.
    package var byteCount: Int {
        switch self {
        case .append(let envelope, _): Envelope.overhead + envelope.byteCount
        case .record, .settle, .forget, .replace, .expire, .end, .changeUser: Envelope.overhead
        }
    }
}

package struct AppendRules: Equatable, Sendable {
    /// Replaces the waiting message of the same topic of the same origin.
    package var topic: String?
    package var idempotency: IdempotencyClaim?
    /// What is written down with the envelope. When one of them does not count any more, nothing is appended.
    package var effects: [Effect]
    /// That the device be pushed to, unless it acknowledges first.
    package var wake: WakeRequest?
    /// The consumer whose share of the inbox the envelope takes; nil for envelopes without a share.
    package var consumer: DeviceSerial?

    package init(
        topic: String? = nil, idempotency: IdempotencyClaim? = nil, effects: [Effect] = [], wake: WakeRequest? = nil,
        consumer: DeviceSerial? = nil
    ) {
        self.topic = topic
        self.idempotency = idempotency
        self.effects = effects
        self.wake = wake
        self.consumer = consumer
    }
}

/// The right to be the first of the requests that carry one `Idempotency-Key` to one origin.
package struct IdempotencyClaim: Equatable, Sendable {
    package var keyHash: [UInt8]
    /// The hash of all that the request asks for: another request must not use the same key.
    package var fingerprint: [UInt8]
    package var validUntil: Timestamp

    /// How long a key is remembered.
    package static let keptSeconds: Int64 = 86_400

    package init(keyHash: [UInt8], fingerprint: [UInt8], validUntil: Timestamp) {
        self.keyHash = keyHash
        self.fingerprint = fingerprint
        self.validUntil = validUntil
    }
}

package enum InboxResult: Equatable, Sendable {
    /// Appended; a message of the same topic may have been replaced.
    case stored(replaced: MessageID?)
    /// The outcome of a message that never waited is written; a message of the same topic may have been replaced.
    case recorded(replaced: MessageID?)
    /// The `Idempotency-Key` was used before, by the same request: this is the message it made.
    case duplicate(of: MessageID, acceptedAt: Timestamp, expiresAt: Timestamp, outcome: Outcome?)
    /// The `Idempotency-Key` was used before, by another request.
    case keyReused
    case originGone
    /// The inbox has no room.
    case full
    /// The consumer's share of the inbox has no room.
    case shareFull
    case settled
    /// There was nothing that waited under this identifier.
    case notWaiting
    /// This change cannot be stored; the others of its group were.
    case failed(StoreFault)
}

extension InboxResult {
    package var replaced: MessageID? {
        switch self {
        case .stored(let replaced), .recorded(let replaced): replaced
        default: nil
        }
    }
}
