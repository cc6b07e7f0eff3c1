package import CarillonWire

/// The inboxes of the devices of a home. Envelopes enter, are read and leave only through this type.
package final class Inbox: Sendable {
    private let writer: InboxWriter
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

    /// The present epoch of positions.
    package var epoch: Int64 { positions.epoch }

    /// See ``PositionSource/raise(to:)``.
    func raise(to epoch: Int64) { positions.raise(to: epoch) }

    /// Returns an identifier that no envelope has.
    func newID(for device: DeviceSerial) -> MessageID {
        MessageID(position: positions.next(for: device), secret: Bytes16(high: random.next(), low: random.next()))
    }

    /// Makes an envelope with its identifier, and delivers it to a device. `then` is called when the promise of the mode is
    /// fulfilled. It can be called before this method returns, and from any thread.
    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules = AppendRules(),
        _ make: @escaping @Sendable (MessageID) -> Envelope,
        then: @escaping @Sendable (MessageID, InboxResult) -> Void
    ) {
        switch mode {
        case .kept: keep(device, isOffered: false, { (make($0), rules) }, then)
        case .keptAndOffered: keep(device, isOffered: true, { (make($0), rules) }, then)
        case .now where rules.idempotency == nil: sendVolatile(device, nil, rules, make, then)
        case .now: claim(device, rules, make, then)
        }
    }

    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules = AppendRules(),
        _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> InboxResult {
        await withCheckedContinuation { continuation in
            deliver(to: device, mode, rules: rules, make) { continuation.resume(returning: $1) }
        }
    }

    /// Stores an envelope for a device. The rules are made with the identifier too, because they contain it.
    package func deliver(
        keptBy device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> (Envelope, AppendRules)
    ) async -> InboxResult {
        await withCheckedContinuation { continuation in
            keep(device, isOffered: false, make) { continuation.resume(returning: $1) }
        }
    }

    /// Sends an envelope to the device's connection without storing it. Returns false if no connection accepts it.
    package func sendWithoutStoring(
        to device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> Bool {
        await withCheckedContinuation { continuation in
            let isOffered = sessions.appending(to: device) { hasSession, _ in
                guard hasSession else { return (false, nil) }
                return (true, .offerVolatile(make(newID(for: device))) { continuation.resume(returning: $0) })
            }
            if !isOffered { continuation.resume(returning: false) }
        }
    }

    private func keep(
        _ device: DeviceSerial, isOffered: Bool, _ make: (MessageID) -> (Envelope, AppendRules),
        _ then: @escaping @Sendable (MessageID, InboxResult) -> Void
    ) {
        let refused: MessageID? = sessions.appending(to: device) { hasSession, isAwaited in
            let made = make(newID(for: device))
            let envelope = made.0
            var rules = made.1
            // A device that is connected or expected has some time to acknowledge before it is woken.
            if hasSession || isAwaited, let wake = rules.wake, !wake.isUnconditional {
                rules.wake?.dueAt = wake.dueAt.adding(seconds: WakeRequest.presenceSeconds)
            }
            let goesLive = isOffered && hasSession
            let isQueued = writer.enqueue(.append(envelope, rules), urgency: goesLive ? .offered : .now) {
                then(envelope.id, $0)
            }
            return isQueued ? (nil, goesLive ? .offer(envelope) : .storedMore) : (envelope.id, nil)
        }
        if let refused { then(refused, .failed(Self.queueFull)) }
    }

    /// Sends an envelope to the device's connection, if there is one that accepts it.
    ///
    /// - Parameter claimed: The identifier of an envelope that is stored already.
    private func sendVolatile(
        _ device: DeviceSerial, _ claimed: MessageID?, _ rules: AppendRules, _ make: (MessageID) -> Envelope,
        _ then: @escaping @Sendable (MessageID, InboxResult) -> Void
    ) {
        let end: (@Sendable () -> Void)? = sessions.appending(to: device) { hasSession, _ in
            let envelope = make(claimed ?? newID(for: device))
            // No caller waits for this write. The outcome is written after it, or replaces it.
            if claimed == nil, !writer.enqueue(.append(envelope.trace, rules), urgency: .offered) {
                return ({ then(envelope.id, .failed(Self.queueFull)) }, nil)
            }
            let answer: @Sendable (Bool) -> Void = { [self] wasAccepted in
                if !wasAccepted { drop(envelope.id, of: device, isClaimed: claimed != nil) }
                then(envelope.id, wasAccepted ? .sent : .dropped)
            }
            return hasSession ? (nil, .offerVolatile(envelope, answer: answer)) : ({ answer(false) }, nil)
        }
        end?()
    }

    /// Writes the idempotency key and the envelope before the envelope is sent, because a repetition must find the key.
    private func claim(
        _ device: DeviceSerial, _ rules: AppendRules, _ make: @escaping @Sendable (MessageID) -> Envelope,
        _ then: @escaping @Sendable (MessageID, InboxResult) -> Void
    ) {
        let id = newID(for: device)
        let isQueued = writer.enqueue(.append(make(id).trace, rules), urgency: .now) { [self] result in
            guard result.isStored else { return then(id, result) }
            sendVolatile(device, id, rules, make, then)
        }
        if !isQueued { then(id, .failed(Self.queueFull)) }
    }

    /// Removes a message of TTL 0 that no device received. If the message has an idempotency key, the outcome is stored instead.
    private func drop(_ id: MessageID, of device: DeviceSerial, isClaimed: Bool) {
        if isClaimed { finish(id, device: device, .dropped, code: nil) } else { writer.dropped(id) }
    }

    private static let queueFull = StoreFault(.unavailable, "too many writes are queued")

    /// Waits until each earlier change of the device is on disk, or has failed.
    package func flush(_ device: DeviceSerial) async { await writer.flush(device) }

    /// Waits until each earlier change of all devices is on disk, or has failed.
    package func flush() async { await writer.flush() }

    /// Tries again to write the changes that could not be written. Without this call they are tried once a second.
    package func writeUnwritten() async { await writer.writeUnwritten() }

    /// Whether changes are kept that could not be written.
    package var hasUnwritten: Bool { writer.hasUnwritten }

    /// Whether a change of the device is not on disk yet.
    package func hasQueued(_ device: DeviceSerial) -> Bool { writer.hasQueued(device) }

    /// Whether a read of the device's inbox that began after a moment can lack an envelope that was queued before this call,
    /// or contain an envelope that was withdrawn before this call.
    package func isOutdated(_ device: DeviceSerial, readAfter moment: InboxChangeClock.Moment) -> Bool {
        // The order is important: a change is noted before it leaves the queue.
        hasQueued(device) || sessions.changes.mayHaveChanged(device, since: moment)
    }

    /// Reads an inbox. Each envelope that was queued for the device before the call is found.
    package func waiting(device: DeviceSerial, _ load: PageRequest) async throws -> InboxRead {
        await writer.flush(device)
        let envelopes = try await store.waiting(
            device: device, after: load.after, limit: load.limit, bytes: load.bytes, at: time.now())
        return envelopes.map { .page(InboxPage($0, answering: load)) } ?? .deviceGone
    }

    /// Reads an inbox, and returns a fault instead of throwing it.
    package func read(_ device: DeviceSerial, _ load: PageRequest) async -> Result<InboxRead, StoreFault> {
        do {
            return .success(try await waiting(device: device, load))
        } catch {
            return .failure(error as? StoreFault ?? StoreFault(.unavailable, "\(error)"))
        }
    }

    /// Reads a device and the first envelopes of its inbox in one call of the store. Returns nil if there is no such device.
    package func arrival(of name: DeviceName, _ load: PageRequest) async throws -> ArrivedDevice? {
        guard let arrival = try await store.arrival(of: name, load, at: time.now()) else { return nil }
        let page = arrival.envelopes.map { InboxPage($0, answering: load) } ?? .unread
        return ArrivedDevice(device: arrival.device, page: page, reported: arrival.reported)
    }

    package func waitingCount(device: DeviceSerial) async throws -> Int {
        try await store.waitingCount(device: device, at: time.now())
    }

    /// Returns the number and size of everything that waits in all inboxes together.
    package func waitingInAll() async throws -> InboxUsage.Waiting { try await store.waitingInAll() }

    /// Finishes an envelope for which the device reported a result. A result that cannot be written is kept and written later. If
    /// too many results are kept, the device's session ends.
    ///
    /// - Returns: Whether the result was accepted.
    @discardableResult
    package func finish(_ id: MessageID, device: DeviceSerial, _ outcome: Outcome, code: Int?) -> Bool {
        writer.finished(id, device: device, FinalOutcome(outcome, code: code, at: time.now()))
    }

    /// Finishes envelopes whose results a device reported in another way than by its session. Returns when the results are on
    /// disk.
    ///
    /// - Throws: ``StoreFault`` if a result of the device is not on disk.
    package func finish(_ answers: [EnvelopeAnswer], device: DeviceSerial) async throws {
        guard !answers.isEmpty else { return }
        let areTaken = take(answers, of: device)
        sessions.call(.finished(answers.map(\.id)), ofDevice: device)
        try await writer.write(allOf: device)
        if !areTaken { throw Self.queueFull }
    }

    /// Removes envelopes from an inbox with an outcome. When this method returns, the outcome is on disk, and no session can
    /// deliver the envelopes.
    ///
    /// - Throws: ``StoreFault`` if a result of the device is not on disk.
    package func takeOut(_ envelopes: [MessageID], of device: DeviceSerial, as outcome: Outcome) async throws {
        guard !envelopes.isEmpty else { return }
        let areTaken = take(envelopes.map { EnvelopeAnswer($0, outcome) }, of: device)
        for envelope in envelopes { await withdraw(.envelope(envelope.position), from: device) }
        try await writer.write(allOf: device)
        if !areTaken { throw Self.queueFull }
    }

    private func take(_ answers: [EnvelopeAnswer], of device: DeviceSerial) -> Bool {
        var areTaken = true
        for answer in answers where !finish(answer.id, device: device, answer.outcome, code: answer.code) {
            areTaken = false
        }
        return areTaken
    }

    /// Returns the record of a message, or nil if the message is unknown or was removed.
    ///
    /// - Throws: ``StoreFault``, also if the outcome of the message is known and not written yet.
    package func record(of id: MessageID) async throws -> MessageRecord? {
        await writer.flush()
        if let fault = writer.fault(of: id) { throw fault }
        return try await store.record(of: id, at: time.now())
    }

    /// Withdraws a message for its sender. When this method returns, no session can deliver the message. Returns false if it was
    /// no longer waiting.
    package func cancel(_ id: MessageID) async throws -> Bool {
        guard let record = try await record(of: id), record.finalOutcome == nil else { return false }
        let finalOutcome = FinalOutcome(.cancelled, at: time.now())
        let result = try await writer.write(.finish(id, device: nil, finalOutcome))
        guard result == .finished else { return false }
        await withdraw(.envelope(id.position), from: record.device)
        return true
    }

    /// Withdraws an envelope from an inbox. When this method returns, no session can deliver it. Returns false if the envelope
    /// has an outcome already, or does not exist.
    package func takeBack(_ id: MessageID, from device: DeviceSerial) async throws -> Bool {
        try await writer.write(allOf: device)
        let finalOutcome = FinalOutcome(.cancelled, at: time.now())
        guard try await writer.write(.finish(id, device: nil, finalOutcome)) == .finished else { return false }
        await withdraw(.envelope(id.position), from: device)
        return true
    }

    /// Withdraws envelopes from the device's sessions. Returns when no session can deliver them.
    package func withdraw(_ withdrawal: DeliveryMachine.Withdrawal, from device: DeviceSerial) async {
        await withCheckedContinuation { continuation in
            sessions.withdraw(withdrawal, from: device) { continuation.resume() }
        }
    }
}

extension InboxPage {
    fileprivate init(_ envelopes: [Envelope], answering load: PageRequest) {
        let size = envelopes.reduce(0) { $0 + $1.byteCount }
        self.init(envelopes: envelopes, isComplete: envelopes.count < load.limit && size < load.bytes)
    }
}
