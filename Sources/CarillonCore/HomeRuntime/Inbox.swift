package import CarillonWire

/// The inboxes of the devices of a home: the one place where envelopes enter, are read, and leave.
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

    /// Brings an envelope, which is made with its identifier, to a device; says when what the mode promises is done. What
    /// says so may be called before this returns, and from any thread.
    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules = AppendRules(),
        _ make: @escaping @Sendable (MessageID) -> Envelope,
        then: @escaping @Sendable (MessageID, DeliveryResult) -> Void
    ) {
        switch mode {
        case .kept: keep(device, isOffered: false, { (make($0), rules) }, then)
        case .keptAndOffered: keep(device, isOffered: true, { (make($0), rules) }, then)
        case .now where rules.idempotency == nil: give(device, nil, rules, make, then)
        case .now: claim(device, rules, make, then)
        }
    }

    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules = AppendRules(),
        _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> DeliveryResult {
        await withCheckedContinuation { continuation in
            deliver(to: device, mode, rules: rules, make) { continuation.resume(returning: $1) }
        }
    }

    /// The same, of one that is kept, where what is written with it names it.
    package func deliver(
        keptBy device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> (Envelope, AppendRules)
    ) async -> DeliveryResult {
        await withCheckedContinuation { continuation in
            keep(device, isOffered: false, make) { continuation.resume(returning: $1) }
        }
    }

    /// Gives an envelope to the device's connection, and keeps nothing of it. Answers false where none takes it.
    package func giveOnce(
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
        _ then: @escaping @Sendable (MessageID, DeliveryResult) -> Void
    ) {
        let refused: MessageID? = sessions.appending(to: device) { hasSession, isAwaited in
            let made = make(newID(for: device))
            let envelope = made.0
            var rules = made.1
            // Whoever is there has a while to acknowledge.
            if hasSession || isAwaited, let wake = rules.wake, !wake.isUnconditional {
                rules.wake?.dueAt = wake.dueAt.adding(seconds: WakeRequest.presenceSeconds)
            }
            let goesLive = isOffered && hasSession
            let isQueued = writer.enqueue(.append(envelope, rules), urgency: goesLive ? .offered : .now) {
                then(envelope.id, DeliveryResult($0))
            }
            return isQueued ? (nil, goesLive ? .offer(envelope) : .storedMore) : (envelope.id, nil)
        }
        if let refused { then(refused, .failed(Self.queueFull)) }
    }

    /// Gives an envelope to the device's connection, if there is one that takes it.
    ///
    /// - Parameter claimed: The identifier of an envelope that is written down already.
    private func give(
        _ device: DeviceSerial, _ claimed: MessageID?, _ rules: AppendRules, _ make: (MessageID) -> Envelope,
        _ then: @escaping @Sendable (MessageID, DeliveryResult) -> Void
    ) {
        let end: (@Sendable () -> Void)? = sessions.appending(to: device) { hasSession, _ in
            let envelope = make(claimed ?? newID(for: device))
            // Nothing waits for this write: the outcome follows it, or takes its place.
            if claimed == nil, !writer.enqueue(.append(envelope.trace, rules), urgency: .offered) {
                return ({ then(envelope.id, .failed(Self.queueFull)) }, nil)
            }
            let answer: @Sendable (Bool) -> Void = { [self] wasGiven in
                if !wasGiven { drop(envelope.id, of: device, isClaimed: claimed != nil) }
                then(envelope.id, wasGiven ? .given : .dropped)
            }
            return hasSession ? (nil, .offerVolatile(envelope, answer: answer)) : ({ answer(false) }, nil)
        }
        end?()
    }

    /// A repetition must find the key, so that it is written first.
    private func claim(
        _ device: DeviceSerial, _ rules: AppendRules, _ make: @escaping @Sendable (MessageID) -> Envelope,
        _ then: @escaping @Sendable (MessageID, DeliveryResult) -> Void
    ) {
        let id = newID(for: device)
        let isQueued = writer.enqueue(.append(make(id).trace, rules), urgency: .now) { [self] written in
            guard case .result(.stored) = written else { return then(id, DeliveryResult(written)) }
            give(device, id, rules, make, then)
        }
        if !isQueued { then(id, .failed(Self.queueFull)) }
    }

    /// Of a message of TTL 0 that was given to nobody nothing stays but the key that it came with.
    private func drop(_ id: MessageID, of device: DeviceSerial, isClaimed: Bool) {
        if isClaimed { settle(id, device: device, .dropped, code: nil) } else { writer.dropped(id) }
    }

    private static let queueFull = StoreFault(.unavailable, "too many writes are queued")

    /// Waits until everything that was said of the device before is on disk, or has failed.
    package func flush(_ device: DeviceSerial) async { await writer.flush(device) }

    /// The same, of all devices.
    package func flush() async { await writer.flush() }

    /// Tries all changes once more that could not be written. They are tried once a second without that.
    package func writeUnwritten() async { await writer.writeUnwritten() }

    /// Whether changes are kept that could not be written.
    package var hasUnwritten: Bool { writer.hasUnwritten }

    /// Whether something that was said of the device is on its way to the disk.
    package func hasQueued(_ device: DeviceSerial) -> Bool { writer.hasQueued(device) }

    /// Whether a read of the device's inbox that began after a moment may lack an envelope that was queued before this call,
    /// or have an envelope that was withdrawn before this call.
    package func isOutdated(_ device: DeviceSerial, readAfter moment: InboxChangeClock.Moment) -> Bool {
        // The order matters: a change is noted before it leaves the queue.
        hasQueued(device) || sessions.changes.mayHaveChanged(device, since: moment)
    }

    /// What waits; everything that was queued for the device before the call is seen.
    package func waiting(device: DeviceSerial, _ load: PageRequest) async throws -> InboxRead {
        await writer.flush(device)
        let envelopes = try await store.waiting(
            device: device, after: load.after, limit: load.limit, bytes: load.bytes, at: time.now())
        return envelopes.map { .page(InboxPage($0, answering: load)) } ?? .deviceGone
    }

    /// The same, and what went wrong.
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
        return ArrivedDevice(device: arrival.device, page: page, said: arrival.said)
    }

    package func waitingCount(device: DeviceSerial) async throws -> Int {
        try await store.waitingCount(device: device, at: time.now())
    }

    /// How much waits in all inboxes together.
    package func waitingInAll() async throws -> InboxUsage.Waiting { try await store.waitingInAll() }

    /// The device answered for an envelope. An answer that cannot be written is kept and written later; beyond the limit of what is
    /// kept, the device's session ends.
    ///
    /// - Returns: False if it was not taken.
    @discardableResult
    package func settle(_ id: MessageID, device: DeviceSerial, _ outcome: Outcome, code: Int?) -> Bool {
        writer.settled(id, device: device, Settlement(outcome, code: code, at: time.now()))
    }

    /// The same of envelopes that a device answered for by another way than its session; returns when it is on disk.
    ///
    /// - Throws: ``StoreFault`` when something that was said of the device is not on disk.
    package func settle(_ answers: [EnvelopeAnswer], device: DeviceSerial) async throws {
        guard !answers.isEmpty else { return }
        let areTaken = take(answers, of: device)
        sessions.call(.settled(answers.map(\.id)), ofDevice: device)
        try await writer.write(allOf: device)
        if !areTaken { throw Self.queueFull }
    }

    /// Takes envelopes out of an inbox; returns when that is on disk, and a live session will not give them any more.
    ///
    /// - Throws: ``StoreFault`` when something that was said of the device is not on disk.
    package func takeOut(_ envelopes: [MessageID], of device: DeviceSerial, as outcome: Outcome) async throws {
        guard !envelopes.isEmpty else { return }
        let areTaken = take(envelopes.map { EnvelopeAnswer($0, outcome) }, of: device)
        for envelope in envelopes { await withdraw(.envelope(envelope.position), from: device) }
        try await writer.write(allOf: device)
        if !areTaken { throw Self.queueFull }
    }

    private func take(_ answers: [EnvelopeAnswer], of device: DeviceSerial) -> Bool {
        var areTaken = true
        for answer in answers where !settle(answer.id, device: device, answer.outcome, code: answer.code) {
            areTaken = false
        }
        return areTaken
    }

    /// What is known of a message; nil when it is unknown or forgotten.
    ///
    /// - Throws: ``StoreFault``, also when its outcome is known and not written yet.
    package func record(of id: MessageID) async throws -> MessageRecord? {
        await writer.flush()
        if let fault = writer.fault(of: id) { throw fault }
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

    /// Takes an envelope out of an inbox. When this returns, it will not be given any more. Answers false when the device had
    /// answered for it, or it was never there.
    package func takeBack(_ id: MessageID, from device: DeviceSerial) async throws -> Bool {
        try await writer.write(allOf: device)
        let settlement = Settlement(.cancelled, at: time.now())
        guard try await writer.write(.settle(id, device: nil, settlement)) == .settled else { return false }
        await withdraw(.envelope(id.position), from: device)
        return true
    }

    /// Returns when a live session cannot give any more what was withdrawn.
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

extension DeliveryResult {
    fileprivate init(_ written: InboxWriter.Written) {
        switch written {
        case .result(.stored): self = .stored
        case .result(.failed(let fault)), .failed(let fault): self = .failed(fault)
        case .result(let result): self = .refused(result)
        case .settled(let settlement): self = .settled(settlement)
        }
    }
}
