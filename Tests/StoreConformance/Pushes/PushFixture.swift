import CarillonCore
import CarillonWire
import TestStores
import Testing

/// A store with a device that has a push token.
struct PushFixture {
    static let start = StoreFixture.start

    let base: StoreFixture
    var store: any Store { base.store }
    var device: DeviceSerial { base.device.serial }
    var queue: PushQueue { PushQueue(app: base.device.app, environment: .production) }
    var sandbox: PushQueue { PushQueue(app: base.device.app, environment: .sandbox) }

    /// - Parameter token: Nil leaves the device without a push token.
    init(_ stores: any StoreMaker, _ settings: StoreSettings = StoreSettings(), token: String? = "aa01") async throws {
        base = try await StoreFixture(stores.open(settings))
        if let token { try await register(token) }
    }

    private init(_ base: StoreFixture) { self.base = base }

    /// Returns the fixture with a store that was opened again.
    func again(_ store: any Store) -> PushFixture { PushFixture(base.again(store)) }

    static func profile(_ token: String?, _ environment: PushEnvironment = .production) throws -> DeviceProfile {
        var profile = DeviceProfile()
        profile.address = try token.map {
            .init(platform: .apple, token: try PushToken(hexadecimal: $0), environment: environment)
        }
        return profile
    }

    /// Sets the text of alerts; nil removes it.
    func setAlertText(_ text: String?) async throws {
        try await store.setDocument(.alertText, of: base.device.app, to: text)
    }

    func register(_ token: String?, _ environment: PushEnvironment = .production, at now: Timestamp = start) async throws {
        let profile = try Self.profile(token, environment)
        let result = try await store.changeRegistration(of: device, at: now) { _ in .reports(profile, confirms: true) }
        _ = try #require(result).get()
    }

    func change(
        at now: Timestamp = start, _ change: @escaping @Sendable (DeviceRegistration) -> DeviceRegistration?
    ) async throws {
        let result = try await store.changeRegistration(of: device, at: now) { current in
            change(current).map { .becomes($0) } ?? .nothing
        }
        _ = try #require(result).get()
    }

    var status: DeviceStatus? { get async throws { try await store.registration(of: device)?.status } }

    // MARK: Messages

    func append(
        _ position: Int64, _ mode: WakeMode = .background, at now: Timestamp = start, dueAt: Timestamp? = nil,
        ttl: Int64 = 100_000, urgency: Urgency = .normal, topic: String? = nil
    ) -> InboxOperation {
        var envelope = base.envelope(position, ttl: ttl, at: now)
        envelope.urgency = urgency
        return .append(
            envelope, AppendRules(topic: topic, wake: mode == .none ? nil : WakeRequest(mode, dueAt: dueAt ?? now)))
    }

    @discardableResult func commit(_ operations: InboxOperation...) async throws -> [InboxResult] {
        try await store.commit(operations)
    }

    func acknowledge(_ position: Int64, at now: Timestamp = start) -> InboxOperation {
        .finish(base.envelope(position).id, device: device, FinalOutcome(.acknowledged, at: now))
    }

    // MARK: Pushes

    func lease(at now: Timestamp = start, in queue: PushQueue? = nil, limit: Int = 100) async throws -> [LeasedPush] {
        try await store.leasePushes(
            of: queue ?? self.queue, limit: limit, at: now, until: now.adding(seconds: LeasedPush.leaseSeconds)
        ).pushes
    }

    @discardableResult
    func end(_ push: LeasedPush, _ verdict: PushEnd.Verdict, at now: Timestamp = start) async throws -> PushState? {
        try await store.endPushes([PushEnd(push, verdict, at: now)]).first
    }

    /// Leases the only due push, and ends it as handed over.
    func hand(at now: Timestamp) async throws {
        let pushes = try await lease(at: now)
        try #require(pushes.count == 1)
        try await end(pushes[0], .handed, at: now)
    }

    func isDue(at now: Timestamp) async throws -> Bool { try await store.dueQueues(at: now).contains(queue) }

    /// Returns the standings of the pushes of a message.
    func standings(_ position: Int64, at now: Timestamp = start) async throws -> [PushRecord.Standing] {
        try await store.pushes(for: base.envelope(position).id, of: device, at: now).map(\.standing)
    }
}

extension Timestamp {
    func after(_ seconds: Int64) -> Timestamp { adding(seconds: seconds) }
}
