import CarillonCore
import CarillonSQLite
import CarillonWire
import Foundation

/// The stores that the conformance suites run over.
enum StoreKind: CaseIterable, Sendable {
    case memory
    case file
    /// What is gathered in memory is on its way to the table all the time.
    case moving

    func open(_ limits: InboxLimits = .init(), callbacks: CallbackLimits = .init()) throws -> SQLiteStore {
        let settings = StoreSettings(inbox: limits, callbacks: callbacks)
        return switch self {
        case .memory: try SQLiteStore(inMemory: settings)
        case .file: try SQLiteStore(directory: TemporaryDirectory.make(), settings: settings)
        case .moving: try SQLiteStore(directory: TemporaryDirectory.make(), settings: settings, indexCapacity: 2)
        }
    }
}

enum TemporaryDirectory {
    static func make() throws -> String {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }
}

/// A store with one app, one device and two open channels.
struct StoreFixture {
    static let start = Timestamp(milliseconds: 1_700_000_000_000)

    let store: SQLiteStore
    let device: Device
    let first: PushChannel
    let second: PushChannel

    init(_ kind: StoreKind, _ limits: InboxLimits = .init()) async throws {
        try await self.init(kind.open(limits))
    }

    init(_ store: SQLiteStore) async throws {
        self.store = store
        let app = try Self.appID
        _ = try await store.createApp(app, at: Self.start)
        guard
            let device = try await store.insertDevice(
                NewDevice(DeviceID(Bytes16(high: 1, low: 1)), app: app), at: Self.start,
                credential: { _ in SecretHash(of: [1]) })
        else { throw Missing() }
        self.device = device
        first = try await Self.open(1, of: device, in: store)
        second = try await Self.open(2, of: device, in: store)
    }

    private init(_ store: SQLiteStore, _ device: Device, _ first: PushChannel, _ second: PushChannel) {
        self.store = store
        self.device = device
        self.first = first
        self.second = second
    }

    /// The same device and channels in the same store, opened again.
    func again(_ store: SQLiteStore) -> StoreFixture { StoreFixture(store, device, first, second) }

    struct Missing: Error {}

    static var appID: AppID {
        get throws {
            guard let id = AppID("com.example.app") else { throw Missing() }
            return id
        }
    }

    static func open(
        _ number: UInt64, of device: Device, in store: SQLiteStore, limit: Int = 10
    ) async throws -> PushChannel {
        let result = try await store.openChannel(
            ChannelID(Bytes16(high: 7, low: number)), device: device.serial, name: nil, vapidKey: nil, limit: limit,
            at: start)
        guard case .opened(let channel) = result else { throw Missing() }
        return channel
    }

    func envelope(
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

    func append(_ envelope: Envelope, topic: String? = nil, claim: IdempotencyClaim? = nil) async throws -> InboxResult {
        try await store.commit([.append(envelope, AppendRules(topic: topic, idempotency: claim))])[0]
    }

    func waiting(after position: Int64 = 0, limit: Int = 100, at now: Timestamp = start) async throws -> [Envelope] {
        try await store.waiting(device: device.serial, after: position, limit: limit, bytes: 1 << 20, at: now) ?? []
    }

    func outcome(_ position: Int64, at now: Timestamp = start) async throws -> Outcome? {
        try await store.record(of: envelope(position).id, at: now)?.settlement?.outcome
    }
}
