import CarillonCore
import CarillonWire
import TestStores
import Testing

/// A store with a device that has a binding, and updates for it.
struct UpdateFixture {
    static let start = StoreFixture.start

    let base: StoreFixture
    let key = KeyID(7)
    var store: any Store { base.store }
    var device: DeviceSerial { base.device.serial }
    var app: AppSerial { base.device.app }

    init(_ stores: any StoreMaker, _ limits: InboxLimits = .init()) async throws {
        base = try await StoreFixture(stores, limits)
    }

    private init(_ base: StoreFixture) { self.base = base }

    /// The same in a store that was opened again.
    func again(_ store: any Store) -> UpdateFixture { UpdateFixture(base.again(store)) }

    func anotherDevice(_ number: UInt8 = 1, token: String? = nil) async throws -> Device {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: UInt64(number))), app: try StoreFixture.appID,
            profile: try PushFixture.profile(token))
        return try #require(try await base.insert(new, secret: [9, number]))
    }

    func anotherApp() async throws -> AppSerial {
        let app = try #require(AppID("com.example.other"))
        return try #require(try await store.createApp(app, at: Self.start)).serial
    }

    func sign(_ claim: UserClaim, at now: Timestamp = start) async throws {
        let result = try await store.changeRegistration(of: device, at: now) { current in
            .reports(current.profile, confirms: false, user: claim)
        }
        _ = try #require(result).get()
    }

    // MARK: Updates

    func id(_ number: UInt64) -> UpdateID { UpdateID(Bytes16(high: 4, low: number)) }

    func definition(
        _ kind: UpdateKind = .popup, audience: String? = nil, ttl: Int64 = 1000, orderKey: String? = nil,
        wakes: Bool = false, supersedes: UpdateID? = nil
    ) -> Update.Definition {
        Update.Definition(
            kind: kind, payload: [1], audience: audience, mode: .once, ttlSeconds: ttl, orderKey: orderKey, wakes: wakes,
            supersedes: supersedes)
    }

    func request(
        _ number: UInt64, _ definition: Update.Definition, of app: AppSerial? = nil, isIndexed: Bool = true,
        idempotency: (key: [UInt8], fingerprint: [UInt8])? = nil, limits: UpdateLimits = UpdateLimits()
    ) -> UpdateRequest {
        UpdateRequest(
            proposed: id(number), app: app ?? self.app, key: key, definition: definition, body: [UInt8(number % 256), 2],
            isIndexed: isIndexed, idempotency: idempotency, limits: limits)
    }

    func publish(_ request: UpdateRequest, at now: Timestamp = start) async throws -> Update {
        guard case .made(let update, _, _) = try await store.publishUpdate(request, at: now) else {
            throw StoreFixture.Missing()
        }
        return update
    }

    func publish(_ number: UInt64, _ kind: UpdateKind = .popup, ttl: Int64 = 1000, at now: Timestamp = start) async throws
        -> Update
    {
        try await publish(request(number, definition(kind, ttl: ttl)), at: now)
    }

    func status(_ update: Update) async throws -> Update.Status? {
        try await store.update(update.id, of: app)?.status
    }

    // MARK: Bindings

    func bind(
        _ profile: String = "main", _ device: DeviceSerial? = nil, at now: Timestamp = start
    ) async throws -> UpdateBinding {
        try #require(try await store.binding(of: device ?? self.device, profile: profile, at: now))
    }

    // MARK: Completions

    func name(_ update: Update, _ binding: UpdateBinding, entry: Int = 1) -> CompletionKey {
        CompletionKey(update: update.serial, binding: binding.serial, entry: entry)
    }

    func completion(_ update: Update, _ binding: UpdateBinding) async throws -> Completion? {
        try await store.completions(of: binding.serial, [update.serial]).first
    }

    func state(_ update: Update, _ binding: UpdateBinding) async throws -> CompletionMachine.State? {
        try await completion(update, binding)?.machine.state
    }

    /// An operation that puts an update into the inbox of a binding's device.
    ///
    /// - Parameter isAgain: Whether the completion exists; nil if it exists only for a later attempt.
    func offer(
        _ position: Int64, _ update: Update, to binding: UpdateBinding, attempt: Int = 1, isAgain: Bool? = nil,
        cursor: AudienceCursor? = nil, at now: Timestamp = start
    ) -> InboxOperation {
        let offer = UpdateOffer(
            key: name(update, binding), revision: binding.revision, isAgain: isAgain ?? (attempt > 1), attempt: attempt,
            orderKey: update.orderKey, at: now, cursor: cursor)
        let envelope = Envelope(
            id: base.envelope(position).id, device: binding.device, app: app, origin: update.origin,
            kind: .update(.init(body: update.body, shared: update.content, entry: 1, attempt: attempt)),
            acceptedAt: now, expiresAt: update.expiresAt)
        return .append(envelope, AppendRules(topic: offer.key.topic, effects: [.updateOffered(offer)]))
    }

    /// Puts an update into the inbox of a binding's device.
    func give(
        _ position: Int64, _ update: Update, to binding: UpdateBinding, attempt: Int = 1, isAgain: Bool? = nil,
        at now: Timestamp = start
    ) async throws {
        let operation = offer(position, update, to: binding, attempt: attempt, isAgain: isAgain, at: now)
        let results = try await store.commit([operation])
        try #require(results == [.stored(replaced: nil)])
    }

    /// The device receives the deliveries.
    func receive(_ position: Int64, of binding: UpdateBinding, at now: Timestamp = start) async throws {
        let settle = InboxOperation.finish(
            base.envelope(position).id, device: binding.device, FinalOutcome(.acknowledged, at: now))
        try #require(try await store.commit([settle]) == [.finished])
    }

    @discardableResult
    func report(
        _ result: UpdateResult, of update: Update, _ binding: UpdateBinding, attempt: Int? = nil, at now: Timestamp = start
    ) async throws -> ReportAnswer {
        let reported = ReportedResult(update: update.id, entry: 1, attempt: attempt, result: result)
        let answers = try await store.report([reported], receivedTo: nil, of: binding.serial, at: now)
        return try #require(answers.answers.first)
    }

    /// Writes completions without envelopes.
    @discardableResult
    func evaluate(
        _ updates: [Update], _ binding: UpdateBinding, machine: CompletionMachine = CompletionMachine(),
        isFull: Bool = false, at now: Timestamp = start
    ) async throws -> Bool {
        let completions = updates.map {
            Completion(key: name($0, binding), machine: machine, changedAt: now, orderKey: $0.orderKey)
        }
        let place = AudienceCursor(updates.map(\.serial).max() ?? UpdateSerial(0), rules: 1)
        return try await store.evaluated(
            binding.serial, revision: binding.revision, to: place, isFull: isFull, adding: completions, at: now)
    }
}
