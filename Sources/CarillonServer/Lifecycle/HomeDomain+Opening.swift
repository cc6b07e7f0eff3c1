package import CarillonCore
import CarillonWire
package import Logging

extension HomeDomain {
    /// The purpose for which a process uses a store.
    package enum Purpose: Sendable {
        /// The home of all devices. From now on, earlier homes on the store cannot write.
        case server
        /// An operator's command on the store of a stopped server. Homes and the map of shards stay unchanged.
        case command
    }

    /// Creates the only home of a process over a store, and all objects that exist once in the process.
    ///
    /// - Parameters:
    ///   - positionsUsed: The last sequence of the claimed epoch that the home must not use; 0 if it can use the whole epoch.
    ///   - link: Returns the home that connections use to reach the home. Without it, they call the home directly.
    package convenience init(
        store: any Store, addresses: PublicURLs, scheduler: Scheduler, logger: Logger,
        watchSettings: WatchRegistrar.Settings = .init(), workLimits: WorkPace.Limits = .init(),
        rateLimits: RateLimits.Settings = .init(), gatewaySettings: GatewaySettings = .init(),
        userKeys: UserKeyFetcher = .none, approvalHookCaller: ApprovalHookCaller = .none,
        itemLimits: ItemEngine.Limits = .init(),
        updateLimits: UpdateLimits = .init(), turnLimits: RequestLimiter.Limits = .init(),
        attachmentFiles: any AttachmentFiles = NoAttachmentFiles(), attachmentLimits: AttachmentLimits = .init(),
        answerBytes: Int = AnswerMemory.standardBytes, wrappedBy wrapping: WrappingKey? = nil,
        for purpose: Purpose = .server,
        time: TimeSource = .system, ticks: TickSource = .system, positionsUsed: Int64 = 0,
        link: (any Home) -> any Home = { $0 }
    ) async throws {
        let configuration = Configuration(
            addresses: addresses, scheduler: scheduler, logger: logger, watchSettings: watchSettings, workLimits: workLimits,
            rateLimits: rateLimits, gatewaySettings: gatewaySettings, userKeys: userKeys,
            approvalHookCaller: approvalHookCaller,
            itemLimits: itemLimits, updateLimits: updateLimits, turnLimits: turnLimits, attachmentFiles: attachmentFiles,
            attachmentLimits: attachmentLimits, answerBytes: answerBytes, wrapping: wrapping, time: time, ticks: ticks,
            positionsUsed: positionsUsed)
        let (shared, runtimes) = try await HomeDomain.parts(on: store, configuration, homes: 1, for: purpose, link: link)
        self.init(
            shared, runtime: runtimes[0], records: store, attachmentFiles: attachmentFiles, settings: configuration.ofHome)
    }

    /// Creates the homes of a server over a store, and all objects that exist once in the process.
    ///
    /// - Parameters:
    ///   - count: The number of homes. All have the same number of shards. Each is on a node of its own, from node 1 on.
    ///   - link: Returns the home that connections and other homes use to reach a home.
    static func open(
        _ store: any Store, _ configuration: Configuration, homes count: Int, link: (any Home) -> any Home
    ) async throws -> (shared: Domain, homes: [HomeDomain]) {
        let (shared, runtimes) = try await parts(on: store, configuration, homes: count, for: .server, link: link)
        let homes = runtimes.map { runtime in
            HomeDomain(
                shared, runtime: runtime, records: store, attachmentFiles: configuration.attachmentFiles,
                settings: configuration.ofHome)
        }
        return (shared, homes)
    }

    private static func parts(
        on store: any Store, _ configuration: Configuration, homes count: Int, for purpose: Purpose,
        link: (any Home) -> any Home
    ) async throws -> (shared: Domain, runtimes: [HomeRuntime]) {
        let (time, ticks, random) = (configuration.time, configuration.ticks, RandomSource.system)
        let log = BoundedLog.of(configuration.logger, ticks: ticks)
        var generator = random
        // The key ring is opened before an incarnation is added, so that a server with a wrong key file does not stop another
        // server. Listeners bind their addresses later, in their services: a server whose address is in use stops after it became
        // the home.
        let tokenKeys = try await KeyRing.open(store, wrappedBy: configuration.wrapping, random)
        let server = try await store.serverID(proposing: ServerID(.random(using: &generator)))
        let served = try await ServedTime(store: store, time: time, ticks: ticks)
        var runtimes: [HomeRuntime] = []
        for place in 0..<count {
            let shards = ShardSet.part(place, of: count)
            let (home, epoch) = try await begin(purpose, on: store, place, shards)
            let sessions = LiveSessions()
            let writer = InboxWriter(
                store: home, sessions: sessions, scheduler: configuration.scheduler, logger: log.logger)
            let inbox = Inbox(
                store: home, writer: writer, sessions: sessions,
                positions: PositionSource(epoch: epoch, after: configuration.positionsUsed), time: time, random: random)
            let gate = count == 1 ? nil : ShardGate(shards, scheduler: configuration.scheduler)
            runtimes.append(HomeRuntime(inbox: inbox, sessions: sessions, store: home, gate: gate))
        }
        let history = try await store.history(proposing: Int64(bitPattern: random.next()))
        let shared = Domain(
            store: store, documents: AppDocuments(store: store), tokenKeys: tokenKeys,
            isKeyRingWrapped: configuration.wrapping != nil, homes: homes(runtimes, link: link), server: server,
            history: history, served: served, addresses: configuration.addresses,
            callRules: configuration.watchSettings.rules, rateLimits: configuration.rateLimits,
            gatewaySettings: configuration.gatewaySettings, userKeys: configuration.userKeys,
            approvalHookCaller: configuration.approvalHookCaller, turnLimits: configuration.turnLimits,
            answerBytes: configuration.answerBytes, scheduler: configuration.scheduler, log: log, time: time, ticks: ticks,
            random: random)
        return (shared, runtimes)
    }

    /// Returns the store of the home, which all code for devices of the home uses, and the epoch of its positions.
    private static func begin(
        _ purpose: Purpose, on store: any Store, _ place: Int, _ shards: ShardSet
    ) async throws -> (home: any HomeStore, epoch: Int64) {
        switch purpose {
        case .server:
            let node = NodeNumber(NodeNumber.only.rawValue + Int64(place))
            let home = try await store.home(store.addIncarnation(of: node))
            let epoch = try await store.claimEpoch()
            try await ShardMap.take(shards, to: .init(node: node, epoch: epoch), by: home, in: store)
            return (home, epoch)
        case .command:
            // A device that is suspended or resumed receives a message, whose position must be later than all stored positions.
            // Each command claims an epoch, because positions are assigned where code cannot wait for the store. There are 16
            // million epochs.
            return (store, try await store.claimEpoch())
        }
    }

    private static func homes(_ runtimes: [HomeRuntime], link: (any Home) -> any Home) -> Homes {
        if runtimes.count == 1 { return Homes(only: runtimes[0], reachedBy: link(runtimes[0])) }
        let homes = Homes(runtimes.map { Homes.Place(link($0), local: $0) }) { shard in
            ShardSet.place(of: shard, in: runtimes.count)
        }
        for runtime in runtimes { runtime.findOthers { [weak homes] shard in homes?.home(of: shard) } }
        for case let link as LinkedHome in homes.all() { link.connect(homes) }
        return homes
    }
}

extension ShardSet {
    /// Returns the shards of one of several homes: all shards for a single home, otherwise an equal part.
    fileprivate static func part(_ place: Int, of count: Int) -> ShardSet {
        if count == 1 { return .all }
        return ShardSet(ShardSet.all.shards.filter { Self.place(of: $0, in: count) == place })
    }

    fileprivate static func place(of shard: Shard, in count: Int) -> Int { Int(shard.number) * count / Shard.count }
}
