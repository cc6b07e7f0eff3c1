import CarillonBasics
import CarillonCore
import CarillonWire
import Logging
import NIOPosix
import TestStores
import Testing

@testable import CarillonServer

/// Two homes of 512 shards each over one store, with links between them and a clock that the test moves.
struct TwoHomes {
    struct Missing: Error {}

    let store: any Store
    let domains: [HomeDomain]
    /// The links to the homes, in their order.
    let links: [TestLink]
    let app: AppID
    private let clock: SubscriptionWorld.Clock

    init(_ settings: StoreSettings = StoreSettings(), items: ItemEngine.Limits = .init()) async throws {
        let clock = SubscriptionWorld.Clock()
        let store = try await stores.open(settings)
        var runtimes: [HomeRuntime] = []
        for place in 0..<2 { runtimes.append(try await Self.home(place, over: store, time: clock.time)) }
        let links = runtimes.map { TestLink(to: $0) }
        let homes = Homes(zip(links, runtimes).map { Homes.Place($0, local: $1) }) { Self.place(of: $0) }
        let shared = try await Self.domain(of: homes, over: store, time: clock.time)
        domains = runtimes.map { runtime in
            HomeDomain(
                shared, runtime: runtime, records: store, attachmentFiles: NoAttachmentFiles(),
                settings: HomeDomain.Settings(items: items))
        }
        app = try #require(AppID("com.example.app"))
        (self.store, self.links, self.clock) = (store, links, clock)
        _ = try await shared.apps.create(app)
    }

    private static func place(of shard: Shard) -> Int { Int(shard.number) / 512 }

    private static func home(_ place: Int, over store: any Store, time: TimeSource) async throws -> HomeRuntime {
        let node = NodeNumber(Int64(place) + 1)
        let handle = try await store.home(store.addIncarnation(of: node))
        let epoch = try await store.claimEpoch()
        let shards = ShardSet((0..<512).map { Shard(number: UInt16(place * 512 + $0)) })
        try await ShardMap.take(shards, to: .init(node: node, epoch: epoch), by: handle, in: store)
        let sessions = LiveSessions()
        let writer = InboxWriter(
            store: handle, sessions: sessions, scheduler: .on(MultiThreadedEventLoopGroup.singleton), logger: logger)
        let inbox = Inbox(
            store: handle, writer: writer, sessions: sessions, positions: PositionSource(epoch: epoch), time: time,
            random: .system)
        return HomeRuntime(
            inbox: inbox, sessions: sessions, store: handle,
            gate: ShardGate(shards, scheduler: .on(MultiThreadedEventLoopGroup.singleton)))
    }

    private static func domain(of homes: Homes, over store: any Store, time: TimeSource) async throws -> Domain {
        let random = RandomSource.system
        var generator = random
        return Domain(
            store: store, documents: AppDocuments(store: store),
            tokenKeys: try await KeyRing.open(store, wrappedBy: nil, random), isKeyRingWrapped: false, homes: homes,
            server: try await store.serverID(proposing: ServerID(.random(using: &generator))),
            history: try await store.history(proposing: 1),
            served: try await ServedTime(store: store, time: time, ticks: .system),
            addresses: OwnAddresses("https://push.example.com"), callRules: WatchRegistrar.Settings().rules,
            allowances: .init(), gatewaySettings: .init(), userKeys: .none, vetoSource: .none, turnLimits: .init(),
            answerBytes: AnswerMemory.standardBytes, scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            log: BoundedLog.of(logger), time: time, ticks: .system, random: random)
    }

    private static let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    var now: Timestamp { clock.time.now() }
    func pass(seconds: Int64) { clock.advance(seconds: seconds) }

    // MARK: What the homes have

    /// Registers a device of a home.
    func device(at place: Int) async throws -> Device {
        for _ in 0..<100 {
            var generator = RandomSource.system
            let secret = Base64URL.encode((0..<24).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
            let shard = Shard(of: app, registration: SecretHash(of: secret.utf8))
            guard Self.place(of: shard) == place else { continue }
            return try await domains[place].devices.register(app: app, registration: secret).device
        }
        throw Missing()
    }

    /// Returns an item of a home.
    func item(at place: Int, _ name: String = "i") async throws -> ItemKey {
        guard let app = try await domains[0].apps.serial(of: app) else { throw Missing() }
        for number in 0..<100 {
            let name = try #require(ItemName("\(name)\(number)"))
            if Self.place(of: Shard(of: app, item: name.text)) == place { return ItemKey(app: app, name: name) }
        }
        throw Missing()
    }

    /// What waits for a device.
    func waiting(for device: Device) async throws -> [Envelope] {
        for domain in domains {
            while await !domain.itemEngine.isIdle { try await Task.sleep(for: .milliseconds(2)) }
            await domain.runtime.flush()
        }
        return try await store.waiting(device: device.serial, after: 0, limit: 100, bytes: 1 << 30, at: now) ?? []
    }

    /// A device acknowledges what waits for it.
    func acknowledgeAll(by device: Device) async throws {
        let answers = try await waiting(for: device).map { EnvelopeAnswer($0.id, .acknowledged) }
        for domain in domains where domain.home.has(device.serial) {
            try await domain.home.settle(answers, device: device.serial)
        }
    }

    func handOverCount() async throws -> Int { try await stores.count(.handOvers, in: store) }
}
