import CarillonBasics
package import CarillonCore
import CarillonExpression
package import CarillonWire
package import TestStores
import Testing

/// A store with a device that subscribes to items.
package struct SubscriptionFixture {
    package static let start = StoreFixture.start

    package let base: StoreFixture
    package var store: any Store { base.store }
    package var device: DeviceSerial { base.device.serial }
    package var app: AppSerial { base.device.app }

    package init(_ stores: any StoreMaker, _ settings: StoreSettings = StoreSettings()) async throws {
        base = try await StoreFixture(stores.open(settings))
    }

    /// Sets rules for items, and returns the version of their document.
    func setItemRules() async throws -> Int64 {
        let key = AppDocument.Key(.itemRules, of: app)
        return try #require(try await store.putDocument(Array("{}".utf8), as: key, at: Self.start)).rawValue
    }

    package func item(_ text: String) throws -> ItemKey { ItemKey(app: app, name: try #require(ItemName(text))) }

    package func anotherDevice(_ number: UInt8 = 1, profile: DeviceProfile? = nil) async throws -> Device {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: UInt64(number))), app: try StoreFixture.appID, profile: profile)
        return try #require(try await base.insert(new, secret: [9, number]))
    }

    package func suspend(_ device: DeviceSerial, at now: Timestamp = start) async throws {
        let result = try await store.changeRegistration(of: device, at: now) { current in
            RegistrationRules.suspend(current, because: .byOperator, at: now).map { .becomes($0) } ?? .nothing
        }
        _ = try #require(result).get()
    }

    package func resume(_ device: DeviceSerial, at now: Timestamp = start) async throws {
        let result = try await store.changeRegistration(of: device, at: now) { current in
            RegistrationRules.resume(current, at: now).map { .becomes($0) } ?? .nothing
        }
        _ = try #require(result).get()
    }

    package func sign(_ claim: UserClaim) async throws {
        let result = try await store.changeRegistration(of: device, at: Self.start) { current in
            .reports(current.profile, confirms: false, user: claim)
        }
        _ = try #require(result).get()
    }

    // MARK: Subscriptions

    package static func definition(
        _ items: [String] = ["a"], policy: SubscriptionMachine.Policy = .every(coolDownSeconds: 0),
        pace: FiringPace? = nil, key: String? = nil, tags: [String] = [], expiresAt: Timestamp? = nil
    ) throws -> Subscription.Definition {
        Subscription.Definition(
            items: try items.map { try #require(ItemName($0)) }, fields: ["price"],
            format: try NotificationFormat(.object([.init(name: "title", value: .string("Price"))])), policy: policy,
            pace: pace, key: key, tags: tags, expiresAt: expiresAt)
    }

    package func request(
        _ number: UInt64, _ definition: Subscription.Definition, of device: DeviceSerial? = nil,
        changing id: SubscriptionID? = nil, revision: Int64? = nil, condition: WatchedCondition? = nil, limit: Int = 100,
        rulesRevision: Int64? = nil, found: [FoundCondition] = []
    ) -> SubscriptionRequest {
        SubscriptionRequest(
            proposed: SubscriptionID(Bytes16(high: 3, low: number)), changed: id, revision: revision,
            device: device ?? self.device, definition: definition, condition: condition, limit: limit,
            rulesRevision: rulesRevision, found: found)
    }

    package func put(_ request: SubscriptionRequest, at now: Timestamp = start) async throws -> SubscriptionPut {
        try await store.putSubscription(request, at: now)
    }

    /// Makes a subscription.
    package func subscribe(_ request: SubscriptionRequest, at now: Timestamp = start) async throws -> Subscription {
        guard case .made(let subscription) = try await put(request, at: now) else { throw StoreFixture.Missing() }
        return subscription
    }

    package func subscribe(
        _ number: UInt64, _ items: [String] = ["a"], of device: DeviceSerial? = nil
    ) async throws -> Subscription {
        try await subscribe(request(number, Self.definition(items), of: device))
    }

    func target(_ subscription: Subscription) -> Firing.Target {
        .init(subscription: subscription.serial, revision: subscription.machine.revision)
    }

    func armed(on item: String) async throws -> [ArmedSubscription] {
        try await store.armed(on: self.item(item), after: SubscriptionSerial(0), limit: 100)
    }

    // MARK: Items

    static func state(_ price: Int64, at now: Timestamp = start) -> ItemState {
        var state = ItemState(.merge)
        state.apply(.init(["price": ItemValue(.int(price))], at: now))
        return state
    }

    /// Commits an update of an item with one firing for each list of targets.
    @discardableResult
    package func update(
        _ item: String, version: Int64 = 1, firing targets: [[Firing.Target]] = [], at now: Timestamp = start
    ) async throws -> [Int64]? {
        let (key, state) = (try self.item(item), Self.state(version, at: now))
        let firings = targets.map { Firing(item: key.name, app: key.app, state: state, targets: $0) }
        return try await store.commitItem(
            ItemCommit(key: key, item: StoredItem(state: state, version: version), firings: firings))
    }

    // MARK: Delivery

    /// - Parameters:
    ///   - topic: The waiting envelope of this topic is replaced.
    ///   - mode: How the device is woken.
    func notified(
        _ position: Int64, _ subscription: Subscription, _ effect: Effect, replacing topic: String? = nil,
        waking mode: WakeMode? = nil, at now: Timestamp = start
    ) -> InboxOperation {
        let envelope = Envelope(
            id: base.envelope(position).id, device: subscription.device, app: app, origin: subscription.origin,
            kind: .fired(body: [1], countsBadge: true), acceptedAt: now, expiresAt: now.adding(seconds: 100_000))
        let wake = mode.map { WakeRequest($0, dueAt: now, needsAlertText: false) }
        return .append(envelope, AppendRules(topic: topic, effects: [effect], wake: wake))
    }

    /// Puts a firing into the inbox of its device.
    func fire(
        _ position: Int64, _ subscription: Subscription, on item: String = "a", by number: Int64, at now: Timestamp = start
    ) async throws -> InboxResult {
        let effect = Effect.fired(target(subscription), on: try self.item(item).name, by: number, at: now)
        return try await store.commit([notified(position, subscription, effect, at: now)])[0]
    }

    func held(
        _ subscription: Subscription, on item: String = "a", by number: Int64, body: [UInt8] = [1],
        milliseconds: Int64 = 1000, buffer: Int = 1
    ) throws -> ThrottledFiring {
        ThrottledFiring(
            target: target(subscription), device: subscription.device, item: try self.item(item).name, number: number,
            body: body, ttl: 60, isAlwaysPushed: true, isDistinct: false, milliseconds: milliseconds, buffer: buffer)
    }
}
