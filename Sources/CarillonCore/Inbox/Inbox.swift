package import CarillonWire

/// What a look into an inbox found.
package enum InboxRead: Equatable, Sendable {
    case page(InboxPage)
    /// The device, or its app, was deleted.
    case deviceGone
}

package struct InboxPage: Equatable, Sendable {
    package var envelopes: [Envelope]
    /// Whether nothing waited behind these.
    package var isComplete: Bool

    package init(envelopes: [Envelope], isComplete: Bool) {
        self.envelopes = envelopes
        self.isComplete = isComplete
    }
}

/// The inboxes of all devices: the one place where envelopes enter, are read, and leave.
package struct Inbox: Sendable {
    package let writer: InboxWriter
    private let store: any InboxStore
    private let sessions: LiveSessions
    private let positions: PositionSource
    private let time: TimeSource
    private let random: RandomSource

    package init(
        store: any InboxStore, writer: InboxWriter, sessions: LiveSessions, positions: PositionSource,
        time: TimeSource, random: RandomSource
    ) {
        self.store = store
        self.writer = writer
        self.sessions = sessions
        self.positions = positions
        self.time = time
        self.random = random
    }

    /// An identifier for the next envelope.
    package func nextID() -> MessageID {
        MessageID(position: positions.next(), secret: Bytes16(high: random.next(), low: random.next()))
    }

    /// Appends an envelope that is made with its identifier, and says when it is on disk, acknowledged, or refused.
    ///
    /// - Parameter isOffered: Whether a connected device may be given it before it is on disk.
    package func append(
        to device: DeviceSerial, rules: AppendRules, isOffered: Bool, _ make: (MessageID) -> Envelope,
        then: @escaping @Sendable (MessageID, InboxWriter.Written) -> Void
    ) {
        let refused: MessageID? = sessions.appending(to: device) { session in
            let envelope = make(nextID())
            let goesLive = isOffered && session != nil
            let isQueued = writer.enqueue(.append(envelope, rules), urgency: goesLive ? .offered : .now) {
                then(envelope.id, $0)
            }
            guard isQueued else { return envelope.id }
            if goesLive {
                session?.offer(envelope)
            } else {
                session?.storedMore()
            }
            return nil
        }
        if let refused { then(refused, .failed(StoreFault(.unavailable, "too many writes are queued"))) }
    }

    package func append(
        to device: DeviceSerial, rules: AppendRules, isOffered: Bool, _ make: (MessageID) -> Envelope
    ) async -> InboxWriter.Written {
        await withCheckedContinuation { continuation in
            append(to: device, rules: rules, isOffered: isOffered, make) { continuation.resume(returning: $1) }
        }
    }

    /// What waits after a position; everything that was queued before the call is seen.
    package func waiting(
        device: DeviceSerial, after position: Int64, limit: Int, bytes: Int
    ) async throws -> InboxRead {
        await writer.flush()
        let envelopes = try await store.waiting(
            device: device, after: position, limit: limit, bytes: bytes, at: time.now())
        guard let envelopes else { return .deviceGone }
        let size = envelopes.reduce(0) { $0 + $1.byteCount }
        return .page(InboxPage(envelopes: envelopes, isComplete: envelopes.count < limit && size < bytes))
    }

    package func waitingCount(device: DeviceSerial) async throws -> Int {
        try await store.waitingCount(device: device, at: time.now())
    }

    /// The device answered for an envelope.
    package func settle(_ id: MessageID, device: DeviceSerial, _ outcome: Outcome, code: Int?) {
        writer.settled(id, device: device, Settlement(outcome, code: code, at: time.now()))
    }

    /// A message of TTL 0 was given to nobody: nothing of it stays.
    package func drop(_ id: MessageID) { writer.dropped(id) }

    /// What is known of a message; nil when it is unknown or forgotten.
    package func record(of id: MessageID) async throws -> MessageRecord? {
        await writer.flush()
        return try await store.record(of: id, at: time.now())
    }

    /// The sender takes a message back. When this returns, the message will not be given to the device any more.
    /// Answers false when it was no longer waiting.
    package func cancel(_ id: MessageID) async throws -> Bool {
        guard let record = try await record(of: id), record.settlement == nil else { return false }
        let settlement = Settlement(.cancelled, at: time.now())
        let result = try await writer.write(.settle(id, device: nil, settlement))
        guard result == .settled else { return false }
        await withdraw(.envelope(id.position), from: record.device)
        return true
    }

    /// Returns when a live session cannot give any more what was withdrawn.
    package func withdraw(_ withdrawal: EnvelopeWindow.Withdrawal, from device: DeviceSerial) async {
        await withCheckedContinuation { continuation in
            sessions.withdraw(withdrawal, from: device) { continuation.resume() }
        }
    }
}
