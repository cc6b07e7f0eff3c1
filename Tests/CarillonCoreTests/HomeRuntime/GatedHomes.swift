import CarillonWire
import Logging
import TestStores
import Testing

@testable import CarillonCore

/// Two homes over one store, which have one half of the shards each. The first one has a device with a channel.
struct GatedHomes: Sendable {
    struct Missing: Error {}

    static let now = Timestamp(milliseconds: 1_700_000_000_000)
    private static let credential = SecretHash(of: [1])

    let store: any Store
    let runtimes: [HomeRuntime]
    let homes: Homes
    let device: Device
    let channel: PushChannel
    /// The shard of the device.
    let shard = Shard(number: 7)

    var first: HomeRuntime { runtimes[0] }
    var second: HomeRuntime { runtimes[1] }

    /// - Parameters:
    ///   - mostWaiting: The number of calls that can wait for a shard.
    ///   - waits: Ends the waits of calls for a shard.
    ///   - longestWait: The longest wait of a call. On a busy machine, a move can take longer than ``ShardGate/longestWait``.
    init(
        mostWaiting: Int = ShardGate.mostWaiting, waits: Scheduler = GatedHomes.scheduler,
        longestWait: Duration = .seconds(30)
    ) async throws {
        let store = try await stores.open()
        var runtimes: [HomeRuntime] = []
        for place in 0..<2 { runtimes.append(try await Self.home(at: place, over: store, mostWaiting, waits, longestWait)) }
        let app = try #require(AppID("com.example.app"))
        _ = try await store.createApp(app, at: Self.now)
        let id = DeviceID(Bytes16(high: 1, low: 7))
        let inserted = try await store.insertDevice(
            NewDevice(id, app: app), at: Self.now, credential: .fixed(Self.credential))
        guard case .stored(let device, _) = inserted else { throw Missing() }
        let opened = try await store.openChannel(
            Sample.channelID, device: device.serial, name: nil, vapidKey: nil, wake: nil, limit: 10, at: Self.now)
        guard case .opened(let channel) = opened else { throw Missing() }
        self.store = store
        self.runtimes = runtimes
        self.device = device
        self.channel = channel
        let homes = Homes(runtimes.map { Homes.Place($0, local: $0) }) { Self.place(of: $0) }
        for runtime in runtimes { runtime.findOthers { [weak homes] shard in homes?.home(of: shard) } }
        self.homes = homes
    }

    private static func home(
        at place: Int, over store: any Store, _ mostWaiting: Int, _ waits: Scheduler, _ longestWait: Duration
    ) async throws -> HomeRuntime {
        let handle = try await store.home(store.addIncarnation(of: node(place)))
        let epoch = try await store.claimEpoch()
        let shards = ShardSet(ShardSet.all.shards.filter { Self.place(of: $0) == place })
        try await ShardMap.take(shards, to: .init(node: node(place), epoch: epoch), by: handle, in: store)
        let sessions = LiveSessions()
        let writer = InboxWriter(
            store: handle, sessions: sessions, scheduler: scheduler,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let inbox = Inbox(
            store: handle, writer: writer, sessions: sessions, positions: PositionSource(epoch: epoch),
            time: TimeSource { now }, random: Sample.random)
        return HomeRuntime(
            inbox: inbox, sessions: sessions, store: handle,
            gate: ShardGate(shards, scheduler: waits, mostWaiting: mostWaiting, longestWait: longestWait))
    }

    private static func place(of shard: Shard) -> Int { Int(shard.number) * 2 / Shard.count }

    static func node(_ place: Int) -> NodeNumber { NodeNumber(Int64(place) + 1) }

    /// Waits for a tenth of the longer times, so that tests are short.
    static let scheduler = Scheduler { delay, work in
        // Ends with the work.
        _ = Task {
            try? await Task.sleep(for: delay > .milliseconds(200) ? delay / 10 : delay)
            work()
        }
    }

    // MARK: The device

    func deliver(at home: HomeRuntime) async -> (id: MessageID, result: InboxResult) {
        await withCheckedContinuation { continuation in
            home.deliver(to: device.serial, .kept, rules: AppendRules()) { id in
                envelope(id)
            } then: { id, result in
                continuation.resume(returning: (id, result))
            }
        }
    }

    func envelope(_ id: MessageID) -> Envelope {
        Envelope(
            id: id, device: channel.device, app: channel.app, origin: channel.origin,
            kind: .message(.init(body: [1], coding: nil)), acceptedAt: Self.now, expiresAt: Self.now.adding(seconds: 600))
    }

    static let load = PageRequest(after: 0, limit: 9, bytes: 10_000)

    func arrive(at home: any Home, as session: any LiveSession) async throws(HomeFault) -> Arrived {
        try await home.arrive(
            .id(device.id, credential: Self.credential), .credential(Self.credential), Self.load, speaking: 1, as: session)
    }

    func arriveAgain(
        at home: any Home, openedAt: OpeningTime, as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        try await home.arrive(
            .id(device.id, credential: Self.credential), .credential(Self.credential), .nothing, speaking: 1,
            openedAt: openedAt, as: session)
    }

    /// Arrives at the home that has the device.
    func arrive(as session: any LiveSession) async throws(HomeFault) -> Arrived {
        try await homes.arrive(
            .id(device.id, credential: Self.credential), .credential(Self.credential), Self.load, speaking: 1, as: session)
    }

    func waiting() async throws -> [MessageID] {
        let waiting = try await store.waiting(
            device: device.serial, after: 0, limit: 1000, bytes: 1 << 20, at: Self.now)
        return (waiting ?? []).map(\.id)
    }

    func outcome(of id: MessageID) async throws -> Outcome? {
        try await store.record(of: id, at: Self.now)?.finalOutcome?.outcome
    }

    // MARK: Moves

    /// Returns when a home does not accept calls for the shard.
    func isClosing(_ home: HomeRuntime) async {
        while home.shards.contains(shard) { await Task.yield() }
    }

    /// Moves the closed shard to the second home, without its sessions.
    func give() throws {
        let former = try #require(first.gate)
        second.take(shard)
        homes.move(ShardSet([shard]), to: 1)
        former.remove(shard)
    }

    /// Moves the shard from a home to the other one.
    ///
    /// - Parameter release: Runs while the shard is closed.
    func move(
        from place: Int = 0, took: @escaping @Sendable (Shard) async -> Void = { _ in },
        release: @escaping @Sendable (Shard) async -> Bool = { _ in true }
    ) async throws -> ShardMove.Result {
        func participant(_ place: Int) -> ShardMove.Participant {
            ShardMove.Participant(runtimes[place], node: Self.node(place), place: place, release: release, took: took)
        }
        // On a busy machine, no move fails because of its time.
        return try await ShardMove(homes: homes, store: store, longestClosing: .seconds(30))
            .move(shard, from: participant(place), to: participant(1 - place))
    }
}
