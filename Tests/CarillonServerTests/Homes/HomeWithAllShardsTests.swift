import CarillonBasics
import CarillonWire
import Logging
import TestStores
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// One of several homes that has all shards at present.
@Suite(.timeLimit(.minutes(5)))
struct HomeWithAllShardsTests {
    private let domain: HomeDomain
    private let gate: ShardGate
    private let app: App

    init() async throws {
        let scheduler = Scheduler { _, _ in }
        let configuration = HomeDomain.Configuration(
            addresses: PublicURLs("https://push.example.com"), scheduler: scheduler,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let store = try await stores.open()
        let (shared, homes) = try await HomeDomain.open(store, configuration, homes: 2, link: { $0 })
        gate = ShardGate(.all, scheduler: scheduler)
        let first = homes[0].runtime
        domain = HomeDomain(
            shared,
            runtime: HomeRuntime(inbox: first.inbox, sessions: first.sessions, store: first.store, gate: gate),
            records: store, attachmentFiles: NoAttachmentFiles(), settings: HomeDomain.Settings())
        app = try await shared.apps.create(try AppID.checked("com.example.app"))
    }

    @Test func `an item whose shard moves later is an item of another home`() async throws {
        let item = try #require(ItemName("item"))
        let shard = Shard(of: app.serial, item: item.text)
        #expect(domain.subscriptions.places(of: [item], of: app.serial).shards == [])
        #expect(await gate.close(shard, atMost: .zero))
        gate.remove(shard)
        let places = domain.subscriptions.places(of: [item], of: app.serial)
        #expect(places.own == [] && places.shards == [shard])
    }

    @Test func `a registration runs in the shard of its device`() async throws {
        let secret = Base64URL.encode(Array(repeating: UInt8(7), count: 24))
        let shard = Shard(of: app.id, registration: SecretHash(of: secret.utf8))
        let other = Shard(number: shard.number ^ 1)
        await #expect(throws: HomeFault.moved(to: shard)) {
            try await domain.devices.register(app: app.id, registration: secret, in: other)
        }
        let device = try await domain.devices.register(app: app.id, registration: secret, in: shard).device
        #expect(Shard(of: device.serial) == shard)
    }
}
