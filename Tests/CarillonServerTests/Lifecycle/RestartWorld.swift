import CarillonBasics
import CarillonCore
import CarillonWire
import Logging
import NIOPosix
import TestStores
import Testing

@testable import CarillonServer

/// A server with an app, a device that has a push token, and a channel. A test can stop the server and start another server on
/// the same store.
struct RestartWorld {
    struct Settings: Sendable {
        var store = StoreSettings()
        var rateLimits = RateLimits.Settings()
        var userKeys = UserKeyFetcher.none
    }

    private(set) var store: any Store
    private(set) var domain: HomeDomain
    let device: Device
    let channel: PushChannel
    private let settings: Settings
    private let clock: SubscriptionWorld.Clock

    init(_ settings: Settings = Settings()) async throws {
        self.settings = settings
        clock = SubscriptionWorld.Clock()
        store = try await stores.openKept(settings.store)
        domain = try await Self.start(on: store, settings, clock)
        let app = try #require(AppID("com.example.app"))
        _ = try await domain.apps.create(app)
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
        device = try await domain.devices.register(app: app, reporting: profile).device
        let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
        channel = try await domain.channels.register(
            id, device: device.serial, name: nil, vapidKey: nil, wake: nil
        ).channel
    }

    private static func start(
        on store: any Store, _ settings: Settings, _ clock: SubscriptionWorld.Clock
    ) async throws -> HomeDomain {
        let time = clock.time
        return try await HomeDomain(
            store: store, addresses: PublicURLs("https://push.example.com"),
            scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }), rateLimits: settings.rateLimits,
            userKeys: settings.userKeys, time: time, ticks: TickSource { time.now().milliseconds * 1_000_000 })
    }

    /// Ends the server, and starts another server on the same store. Changes that the store refused are lost.
    ///
    /// - Parameter stops: Whether the server first writes the changes that are only in memory. Otherwise the server ends as if it
    ///   was killed while no change was queued.
    mutating func restart(stops: Bool = false) async throws {
        if stops {
            await domain.shared.writeRemaining()
            await domain.writeRemaining()
        }
        await inbox.flush()
        try await stores.close(store)
        let place = try #require(stores.place(of: store))
        store = try await stores.open(at: place, settings.store)
        domain = try await Self.start(on: store, settings, clock)
    }

    // MARK: Time

    var now: Timestamp { clock.time.now() }

    func advance(seconds: Int64) { clock.advance(seconds: seconds) }

    // MARK: Messages

    var inbox: Inbox { domain.runtime.inbox }
    var sessions: LiveSessions { domain.runtime.sessions }

    @discardableResult
    func send(_ urgency: Urgency = .normal, ttl: Int64 = 1_000_000) async throws -> MessageID {
        try await domain.publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: ttl, urgency: urgency), to: channel
        ).id
    }

    func acknowledge(_ id: MessageID) async throws {
        inbox.finish(id, device: device.serial, .acknowledged, code: nil)
        await inbox.flush(device.serial)
    }

    func waiting() async throws -> [MessageID] {
        let waiting = try await store.waiting(device: device.serial, after: 0, limit: 100, bytes: 1 << 20, at: now)
        return try #require(waiting).map(\.id)
    }

    // MARK: Pushes

    var queue: PushQueue { PushQueue(app: device.app, environment: .production) }

    /// Sets the alert text of the app. Urgent messages that are sent afterwards have alerts.
    func setAlertText() async throws {
        let text = try AlertText(.object([.init(name: "title", value: .string("News"))]))
        try await domain.gateways.setAlert(text, of: device.appID)
    }

    func lease(limit: Int = 100) async throws -> [LeasedPush] {
        try await domain.pushes.leasePushes(
            of: queue, in: .all, limit: limit, at: now, until: now.adding(seconds: LeasedPush.leaseSeconds)
        ).pushes
    }

    @discardableResult
    func end(_ push: LeasedPush, _ verdict: PushEnd.Verdict) async throws -> PushState? {
        try await domain.pushes.endPushes([PushEnd(push, verdict, at: now)]).first
    }

    /// Leases the only due push, and ends it as handed over.
    func hand() async throws {
        let pushes = try await lease()
        try #require(pushes.count == 1)
        try await end(pushes[0], .handed)
    }

    /// Returns the pushes that the outbox sends now.
    func due() async throws -> [LeasedPush] { try await domain.outbox.due { _ in true }.pushes }
}
