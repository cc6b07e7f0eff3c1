import CarillonCore
import CarillonWire
import Logging
import NIOPosix
import TestStores

@testable import CarillonServer

/// A process with two homes over one store, which have one half of the shards each.
struct MovingHomes: Sendable {
    let store: any Store
    let domains: [HomeDomain]
    /// How connections reach the homes.
    let links: [ArrivingLink]
    let homes: Homes

    /// A device with a channel.
    struct Phone: Sendable {
        let device: Device
        let credential: String
        let channel: PushChannel
        var shard: Shard { Shard(of: device.serial) }
    }

    struct NeverMoved: Error {}

    init() async throws {
        let store = try await stores.open()
        let (time, ticks, random) = (TimeSource.system, TickSource.system, RandomSource.system)
        var generator = random
        let log = BoundedLog.of(Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let scheduler = Scheduler.on(MultiThreadedEventLoopGroup.singleton)
        var runtimes: [HomeRuntime] = []
        for place in 0..<2 {
            let handle = try await store.home(store.addIncarnation(of: Self.node(place)))
            let epoch = try await store.claimEpoch()
            let shards = ShardSet(ShardSet.all.shards.filter { Self.place(of: $0) == place })
            try await ShardMap.take(shards, to: .init(node: Self.node(place), epoch: epoch), by: handle, in: store)
            let sessions = LiveSessions()
            let writer = InboxWriter(store: handle, sessions: sessions, scheduler: scheduler, logger: log.logger)
            let inbox = Inbox(
                store: handle, writer: writer, sessions: sessions, positions: PositionSource(epoch: epoch), time: time,
                random: random)
            runtimes.append(
                HomeRuntime(
                    inbox: inbox, sessions: sessions, store: handle, gate: ShardGate(shards, scheduler: scheduler)))
        }
        let links = runtimes.map { ArrivingLink(to: $0) }
        let homes = Homes(zip(links, runtimes).map { Homes.Place($0, local: $1) }) { Self.place(of: $0) }
        for link in links { link.connect(homes) }
        let tokenKeys = try await KeyRing.open(store, wrappedBy: nil, random)
        let server = try await store.serverID(proposing: ServerID(.random(using: &generator)))
        let history = try await store.history(proposing: 1)
        let served = try await ServedTime(store: store, time: time, ticks: ticks)
        let shared = Domain(
            store: store, documents: AppDocuments(store: store), tokenKeys: tokenKeys, isKeyRingWrapped: false,
            homes: homes, server: server, history: history, served: served,
            addresses: OwnAddresses("https://push.example.com"), callRules: CallRules(),
            allowances: Allowances.Settings(), gatewaySettings: GatewaySettings(), userKeys: .none, vetoSource: .none,
            turnLimits: SharedTurns.Limits(), answerBytes: AnswerMemory.standardBytes, scheduler: scheduler, log: log,
            time: time, ticks: ticks, random: random)
        domains = runtimes.map { runtime in
            HomeDomain(
                shared, runtime: runtime, records: store, attachmentFiles: NoAttachmentFiles(),
                settings: HomeDomain.Settings())
        }
        self.store = store
        self.links = links
        self.homes = homes
    }

    private static func place(of shard: Shard) -> Int { Int(shard.number) * 2 / Shard.count }

    private static func node(_ place: Int) -> NodeNumber { NodeNumber(Int64(place) + 1) }

    /// The present place of a shard.
    func place(of shard: Shard) -> Int { homes.home(of: shard) === links[0] ? 0 : 1 }

    /// The home that has the device at present.
    func domain(of phone: Phone) -> HomeDomain { domains[place(of: phone.shard)] }

    // MARK: Devices

    func phone() async throws -> Phone {
        let app = try AppID.checked("com.example.app")
        if try await domains[0].apps.serial(of: app) == nil { _ = try await domains[0].apps.create(app) }
        let (device, credential) = try await domains[0].devices.register(app: app)
        var random = SystemRandomNumberGenerator()
        let channels = domains[place(of: Shard(of: device.serial))].channels
        let channel = try await channels.register(
            .random(using: &random), device: device.serial, name: nil, vapidKey: nil
        ).channel
        return Phone(device: device, credential: credential.text, channel: channel)
    }

    /// Sends a message to the home that has the device. Repeats that while the device moves.
    func send(to phone: Phone, ttl: Int64 = 60) async throws -> MessageID {
        let request = PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: ttl)
        while true {
            do {
                return try await domain(of: phone).publisher.publish(request, to: phone.channel).id
            } catch is StoreFault {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    // MARK: Moves

    /// Tries once to move a shard to the other home.
    func tryMove(_ shard: Shard) async throws -> ShardMove.Result {
        let parties = (0..<2).map { domains[$0].party(on: Self.node($0), at: $0) }
        let place = place(of: shard)
        return try await ShardMove(homes: homes, store: store).move(shard, from: parties[place], to: parties[1 - place])
    }

    /// Moves a shard to the other home. Tries again while there is work under way.
    func move(_ shard: Shard) async throws {
        for _ in 0..<100 {
            if try await tryMove(shard) == .moved { return }
        }
        throw NeverMoved()
    }
}
