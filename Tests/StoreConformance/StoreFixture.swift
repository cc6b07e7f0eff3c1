package import CarillonCore
package import CarillonWire
package import TestStores

/// A store with one app, one device and two open channels.
package struct StoreFixture {
    package static let start = Timestamp(milliseconds: 1_700_000_000_000)

    package let store: any Store
    package let device: Device
    package let first: PushChannel
    package let second: PushChannel

    package init(_ stores: any StoreMaker, _ limits: InboxLimits = .init()) async throws {
        try await self.init(stores.open(StoreSettings(inbox: limits)))
    }

    package init(_ store: any Store) async throws {
        self.store = store
        let app = try Self.appID
        _ = try await store.createApp(app, at: Self.start)
        let new = NewDevice(DeviceID(Bytes16(high: 1, low: 1)), app: app)
        guard let device = try await Self.insert(new, secret: [1], in: store) else { throw Missing() }
        self.device = device
        first = try await Self.open(1, of: device, in: store)
        second = try await Self.open(2, of: device, in: store)
    }

    /// A store that has the device and its channels already.
    package init(_ store: any Store, device: Device, first: PushChannel, second: PushChannel) {
        self.store = store
        self.device = device
        self.first = first
        self.second = second
    }

    /// The same device and channels in the same store, opened again.
    package func again(_ store: any Store) -> StoreFixture {
        StoreFixture(store, device: device, first: first, second: second)
    }

    package struct Missing: Error {
        package init() {}
    }

    package static var appID: AppID {
        get throws {
            guard let id = AppID("com.example.app") else { throw Missing() }
            return id
        }
    }

    package static func open(
        _ number: UInt64, of device: Device, in store: any Store, limit: Int = 10
    ) async throws -> PushChannel {
        let result = try await store.openChannel(
            ChannelID(Bytes16(high: 7, low: number)), device: device.serial, name: nil, vapidKey: nil, wake: nil,
            limit: limit, at: start)
        guard case .opened(let channel) = result else { throw Missing() }
        return channel
    }

    package func insert(_ device: NewDevice, secret: [UInt8], at now: Timestamp = start) async throws -> Device? {
        try await Self.insert(device, secret: secret, at: now, in: store)
    }

    static func insert(
        _ device: NewDevice, secret: [UInt8], at now: Timestamp = start, in store: any Store
    ) async throws -> Device? {
        let inserted = try await store.insertDevice(device, at: now, credential: .fixed(SecretHash(of: secret)))
        guard case .stored(let device, _) = inserted else { return nil }
        return device
    }

    package func envelope(
        _ position: Int64, on channel: PushChannel? = nil, ttl: Int64 = 60, bytes: Int = 10,
        at now: Timestamp = start
    ) -> Envelope {
        let channel = channel ?? first
        return Envelope(
            id: MessageID(position: position, secret: Bytes16(high: 5, low: UInt64(bitPattern: position))),
            device: channel.device, app: channel.app, origin: channel.origin,
            kind: .message(.init(body: Array(repeating: 9, count: bytes), coding: ContentCoding(.aes128gcm))),
            acceptedAt: now, expiresAt: now.adding(seconds: ttl))
    }

    package func acknowledge(_ position: Int64) -> InboxOperation {
        .finish(envelope(position).id, device: device.serial, FinalOutcome(.acknowledged, at: Self.start))
    }

    package func append(_ envelope: Envelope, topic: String? = nil, claim: IdempotencyClaim? = nil) async throws
        -> InboxResult
    {
        try await store.commit([.append(envelope, AppendRules(topic: topic, idempotency: claim))])[0]
    }

    package func waiting(after position: Int64 = 0, limit: Int = 100, at now: Timestamp = start) async throws -> [Envelope] {
        try await store.waiting(device: device.serial, after: position, limit: limit, bytes: 1 << 20, at: now) ?? []
    }

    package func outcome(_ position: Int64, at now: Timestamp = start) async throws -> Outcome? {
        try await store.record(of: envelope(position).id, at: now)?.finalOutcome?.outcome
    }
}
