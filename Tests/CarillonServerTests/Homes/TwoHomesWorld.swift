import CarillonCore
import CarillonWire
import Logging
import NIOPosix
import Synchronization
import TestStores
import Testing

@testable import CarillonServer

/// Two homes with 512 shards each over one store. A test uses the features of each home, and can cut the link to a home.
struct TwoHomesWorld {
    let store: any Store
    let domains: [HomeDomain]
    /// How other homes reach each home.
    let links: [Link]
    let app: App
    private let clock: SubscriptionWorld.Clock

    /// A link to a home, on which questions are lost while it is cut. The answers are those about updates and about the registry.
    final class Link: Home {
        private let home: HomeRuntime
        private let state = Mutex(State())

        private struct State {
            var answers = HomeAnswers()
            var isCut = false
            var counts: [ObjectIdentifier: Int] = [:]
        }

        fileprivate init(to home: HomeRuntime) { self.home = home }

        fileprivate func answer(as domain: HomeDomain) {
            var answers = HomeAnswers()
            domain.addUpdateAnswers(to: &answers)
            domain.addRegistryAnswers(to: &answers)
            state.withLock { [answers] in $0.answers = answers }
        }

        func cut() { state.withLock { $0.isCut = true } }
        func mend() { state.withLock { $0.isCut = false } }

        /// Returns how many questions of a type reached the home.
        func count(of type: any HomeQuestion.Type) -> Int { state.withLock { $0.counts[ObjectIdentifier(type)] ?? 0 } }

        func ask<Question: HomeQuestion>(
            _ question: Question
        ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
            let answers = state.withLock { state -> HomeAnswers? in
                guard !state.isCut else { return nil }
                state.counts[ObjectIdentifier(Question.self), default: 0] += 1
                return state.answers
            }
            guard let answers else { throw HomeFault.unreachable }
            do {
                return .success(try await answers.answer(question))
            } catch {
                return .failure(error)
            }
        }

        func arrive(
            _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, openedAt: OpeningTime,
            as session: any LiveSession
        ) async throws(HomeFault) -> Arrived {
            try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session)
        }

        func read(_ load: InboxLoad, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
            try await home.read(load, of: device)
        }

        func settle(_ answer: EnvelopeAnswer, of device: DeviceSerial) { home.settle(answer, of: device) }
        func leave(_ session: any LiveSession, of device: DeviceSerial) { home.leave(session, of: device) }
        func leave(_ session: any LiveSession, of name: DeviceName) { home.leave(session, of: name) }
        func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse { try await home.handle(request) }
    }

    struct Missing: Error {}

    init() async throws {
        let (clock, store) = (SubscriptionWorld.Clock(), try await stores.open())
        var runtimes: [HomeRuntime] = []
        for place in 0..<2 { runtimes.append(try await Self.home(place, over: store, time: clock.time)) }
        let links = runtimes.map { Link(to: $0) }
        let homes = Homes(zip(links, runtimes).map { Homes.Place($0, local: $1) }) { Int($0.number) / 512 }
        let shared = try await Self.domain(of: homes, over: store, time: clock.time)
        domains = runtimes.map { runtime in
            HomeDomain(
                shared, runtime: runtime, records: store, attachmentFiles: NoAttachmentFiles(),
                settings: HomeDomain.Settings())
        }
        for (link, domain) in zip(links, domains) { link.answer(as: domain) }
        app = try await shared.apps.create(try AppID.checked("com.example.app"))
        (self.store, self.links, self.clock) = (store, links, clock)
    }

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
        let ticks = TickSource { time.now().milliseconds * 1_000_000 }
        return Domain(
            store: store, documents: AppDocuments(store: store),
            tokenKeys: try await KeyRing.open(store, wrappedBy: nil, random), isKeyRingWrapped: false, homes: homes,
            server: try await store.serverID(proposing: ServerID(.random(using: &generator))),
            history: try await store.history(proposing: 1),
            served: try await ServedTime(store: store, time: time, ticks: ticks),
            addresses: OwnAddresses("https://push.example.com"), callRules: WatchRegistrar.Settings().rules,
            allowances: .init(), gatewaySettings: .init(), userKeys: .none, vetoSource: .none, turnLimits: .init(),
            answerBytes: AnswerMemory.standardBytes, scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            log: BoundedLog.of(logger), time: time, ticks: ticks, random: random)
    }

    private static let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    // MARK: Time

    var now: Timestamp { clock.time.now() }

    func advance(seconds: Int64) { clock.advance(seconds: seconds) }

    // MARK: Devices

    /// Registers a device of a home.
    func device(at place: Int, with key: KeyID? = nil) async throws -> Device {
        for _ in 0..<100 {
            let device = try await domains[place].devices.register(app: app.id, with: key).device
            if domains[place].home.has(device.serial) { return device }
        }
        throw Missing()
    }

    /// Registers a device of each home, in the order of the homes.
    func devices(with key: KeyID? = nil) async throws -> [Device] {
        [try await device(at: 0, with: key), try await device(at: 1, with: key)]
    }

    func domain(of device: Device) throws -> HomeDomain {
        try #require(domains.first { $0.home.has(device.serial) })
    }

    /// A device says its push token.
    func sayToken(_ token: String, by device: Device) async throws {
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: token), environment: .production)
        let said = profile
        _ = try await domain(of: device).devices.update(device, from: nil, confirms: true) {
            (_: DeviceProfile) throws(Refusal) -> DeviceProfile in said
        }
    }

    /// Opens a channel of a device, and returns it with its token.
    func channel(of device: Device) async throws -> ChannelRegistrar.Registration {
        let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
        return try await domain(of: device).channels.register(id, device: device.serial, name: nil, vapidKey: nil)
    }

    /// Connects a device to its home.
    func connect(_ device: Device) throws -> NotingSession {
        let connection = NotingSession()
        try domain(of: device).runtime.sessions.join(connection, device: device.serial, of: device.app)
        return connection
    }

    /// What waits for a device.
    func waiting(for device: Device) async throws -> [Envelope] {
        let domain = try domain(of: device)
        await domain.home.flush(device.serial)
        return try await store.waiting(device: device.serial, after: 0, limit: 100, bytes: 1 << 20, at: now) ?? []
    }
}
