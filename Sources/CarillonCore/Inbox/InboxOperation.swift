package import CarillonWire

/// One change of the inboxes. Many changes are committed together, in order. Each succeeds or fails independently.
package enum InboxOperation: Equatable, Sendable {
    /// Appends an envelope, which waits from then on. An envelope that reports the end of a channel also closes the channel.
    case append(Envelope, AppendRules)
    /// Ends a waiting envelope. `device`: nil for the sender, which can end any message whose identifier it has.
    case finish(MessageID, device: DeviceSerial?, FinalOutcome)
    /// Writes the outcome of a message that never waited in the store.
    case record(Envelope, AppendRules, FinalOutcome)
    /// Removes a message of TTL 0 that no device received. Its sender was notified, and no row remains.
    case forget(MessageID)
    /// Replaces a waiting message by a message of TTL 0 that was dropped before it was stored. No row of the dropped message is
    /// written.
    case replace(Envelope, AppendRules)
    /// Ends a waiting envelope that has expired.
    case expire(MessageID, at: Timestamp)
    /// Ends an origin in a device's inbox, with its waiting envelopes.
    case end(DeviceOrigin, because: DisconnectReason, at: Timestamp)
    /// The device's user changes: envelopes of the kinds that ``EnvelopeKind/Behaviour/userChange`` names leave the inbox.
    ///
    /// `hadUser`: The device had a user before.
    case changeUser(DeviceSerial, hadUser: Bool, at: Timestamp)
}

extension InboxOperation {
    /// The device whose inbox is changed; nil if the operation does not name it.
    package var device: DeviceSerial? {
        switch self {
        case .append(let envelope, _), .record(let envelope, _, _), .replace(let envelope, _): envelope.device
        case .finish(_, let device, _): device
        case .end(let origin, _, _): origin.device
        case .changeUser(let device, _, _): device
        case .forget, .expire: nil
        }
    }

    /// The size of the operation in the limit of queued bytes.
    package var byteCount: Int {
        switch self {
        case .append(let envelope, _): Envelope.overhead + envelope.byteCount
        case .record, .finish, .forget, .replace, .expire, .end, .changeUser: Envelope.overhead
        }
    }
}

package struct AppendRules: Equatable, Sendable {
    /// The collapse key. The waiting message of the same origin with this key is replaced.
    package var topic: String?
    package var idempotency: IdempotencyClaim?
    /// The effects that are written with the envelope. If one of them is outdated, nothing is appended.
    package var effects: [Effect]
    /// The wake of the device, unless it acknowledges first.
    package var wake: WakeRequest?
    /// The consumer against whose quota of the inbox the envelope counts; nil for an envelope without a quota.
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

/// The right of a request to be the first with its `Idempotency-Key` at its origin.
package struct IdempotencyClaim: Equatable, Sendable {
    package var keyHash: [UInt8]
    /// The hash of the whole request. A different request must not use the same key.
    package var fingerprint: [UInt8]
    package var validUntil: Timestamp

    /// The number of seconds for which a key is kept.
    package static let keptSeconds: Int64 = 86_400

    package init(keyHash: [UInt8], fingerprint: [UInt8], validUntil: Timestamp) {
        self.keyHash = keyHash
        self.fingerprint = fingerprint
        self.validUntil = validUntil
    }
}

/// The outcome of a change of an inbox: of an operation in the store, and of the delivery of an envelope.
package enum InboxResult: Equatable, Sendable {
    /// Appended. A message with the same collapse key can have been replaced.
    case stored(replaced: MessageID?)
    /// The outcome of a message that never waited is written. A message with the same collapse key can have been replaced.
    case recorded(replaced: MessageID?)
    /// The same request used the `Idempotency-Key` before. The values are those of its message.
    case duplicate(of: MessageID, acceptedAt: Timestamp, expiresAt: Timestamp, outcome: Outcome?)
    /// Another request used the `Idempotency-Key` before.
    case keyReused
    case originGone
    /// The inbox has no room.
    case full
    /// The consumer's quota of the inbox is used up.
    case quotaFull
    case finished
    /// No envelope with this identifier was waiting.
    case notWaiting
    /// This change cannot be stored. The other changes of its group are stored.
    case failed(StoreFault)

    // No store returns the following.

    /// The device answered before the envelope was on disk.
    case answered(FinalOutcome)
    /// A live connection took the envelope, which is not kept.
    case sent
    /// No connection took the envelope.
    case dropped
}

extension InboxResult {
    package var replaced: MessageID? {
        switch self {
        case .stored(let replaced), .recorded(let replaced): replaced
        default: nil
        }
    }

    package var isStored: Bool { if case .stored = self { true } else { false } }
}
