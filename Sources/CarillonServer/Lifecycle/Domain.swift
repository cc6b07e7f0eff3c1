import CarillonBasics
package import CarillonCore
import CarillonExpression
package import CarillonWire
package import Logging
package import NIOCore
import NIOPosix

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// All that the doors use of the core, put together over one store.
package final class Domain: Sendable {
    package let apps: AppRegistrar
    package let documents: AppDocuments
    package let keys: KeyAuthority
    package let devices: DeviceRegistrar
    package let channels: ChannelRegistrar
    package let publisher: Publisher
    /// The only home.
    package let runtime: HomeRuntime
    package let homes: Homes
    package let time: TimeSource
    /// By what is decided what is removed for good.
    package let served: ServedTime
    package let watches: WatchRegistrar
    package let work: LeasedWork<WatchWork>
    package let allowances: Allowances
    package let statusNews: StatusNews
    package let outbox: Outbox
    package let gateways: Gateways
    package let users: AppUsers
    package let vetoes: AppVetoes
    package let formerChannels: FormerChannels
    package let items: AppItems
    package let itemEngine: ItemEngine
    package let firings: Firings
    package let subscriptions: SubscriptionRegistrar
    package let updates: AppUpdates
    package let updateDelivery: UpdateDelivery
    /// Requests of operators and senders that read much.
    let listings: SharedTurns
    package let inboxPositions: InboxPositions
    package let attachments: Attachments
    package let services: Services
    package let answers: AnswerMemory
    let ticks: TickSource
    /// Names the past of the server. After a restore of a backup it is another one.
    package let history: Int64
    /// The same, as devices are told it.
    package var historyName: String { Hexadecimal.encode(history.bigEndianBytes) }
    /// What is known of pushes.
    package let pushes: any PushStore
    let log: BoundedLog
    let logger: Logger
    /// Who this server is, wherever it can be found.
    package let server: ServerID

    package init(
        store: any Store, addresses: OwnAddresses, scheduler: Scheduler, logger: Logger,
        watchSettings: WatchRegistrar.Settings = .init(), workLimits: WorkPace.Limits = .init(),
        allowances: Allowances.Settings = .init(), gatewaySettings: GatewaySettings = .init(),
        userKeys: UserKeySource = .none, vetoSource: VetoSource = .none, itemLimits: ItemEngine.Limits = .init(),
        updateLimits: UpdateLimits = .init(), turnLimits: SharedTurns.Limits = .init(),
        attachmentFiles: any AttachmentFiles = NoAttachmentFiles(), attachmentLimits: AttachmentLimits = .init(),
        answerBytes: Int = AnswerMemory.standardBytes, wrappedBy wrapping: WrappingKey? = nil,
        for purpose: Purpose = .server,
        time: TimeSource = .system, ticks: TickSource = .system
    ) async throws {
        let random = RandomSource.system
        log = .of(logger, ticks: ticks)
        let logger = log.logger
        self.logger = logger
        self.ticks = ticks
        answers = AnswerMemory(bytes: answerBytes, scheduler: scheduler)
        var generator = random
        // The key ring is opened before the incarnation is added: a server with a wrong key file must not stop another one. Listeners bind
        // their addresses later, in their services: a server whose address is in use stops after it became the home.
        let tokenKeys = try await KeyRing.open(store, wrappedBy: wrapping, random)
        server = try await store.serverID(proposing: ServerID(.random(using: &generator)))
        served = try await ServedTime(store: store, time: time, ticks: ticks)
        let sessions = LiveSessions()
        let (home, epoch) = try await Domain.begin(purpose, on: store)
        let directory = ChannelDirectory(store: home)
        let documents = AppDocuments(store: store)
        self.documents = documents
        history = try await store.history(proposing: Int64(bitPattern: random.next()))
        let positions = PositionSource(epoch: epoch)
        let sealer = TokenSealer(keys: tokenKeys, random: random)
        let writer = InboxWriter(store: home, sessions: sessions, scheduler: scheduler, logger: logger)
        let inbox = Inbox(
            store: home, writer: writer, sessions: sessions, positions: positions, time: time, random: random)
        let allowances = Allowances(settings: allowances, ticks: ticks)
        self.allowances = allowances
        runtime = HomeRuntime(inbox: inbox, sessions: sessions, store: home)
        homes = Homes(only: runtime)
        statusNews = StatusNews(devices: home, home: runtime)
        formerChannels = FormerChannels(users: home, home: runtime, directory: directory, time: time)
        users = AppUsers(
            apps: store, documents: documents, keys: tokenKeys, isKeyRingWrapped: wrapping != nil, source: userKeys,
            callRules: watchSettings.rules, time: time, ticks: ticks, random: random, logger: logger)
        vetoes = AppVetoes(
            apps: store, documents: documents, keys: tokenKeys, source: vetoSource, rules: watchSettings.rules, time: time,
            random: random, logger: logger)
        self.time = time
        let conditions = ItemConditions(limits: .ofItems, zoneOffset: TimeZones.offset)
        let payloadSize: Firings.PayloadSize = { PushRendering.payloadSize(of: $0) }
        firings = Firings(
            store: home, home: runtime, conditions: conditions, styles: FoundationStyles.styles, payloadSize: payloadSize,
            time: time)
        itemEngine = ItemEngine(
            store: home, shards: runtime.shards, documents: documents, firings: firings, conditions: conditions, time: time,
            ticks: ticks, logger: logger, limits: itemLimits)
        items = AppItems(store: home, documents: documents, engine: itemEngine, allowances: allowances, time: time)
        subscriptions = SubscriptionRegistrar(
            store: home, engine: itemEngine, items: items, home: runtime, allowances: allowances, vetoes: vetoes,
            payloadSize: payloadSize, time: time, random: random)
        let logs = UpdateLogs(
            store: home, documents: documents, language: AudienceLanguage(zoneOffset: TimeZones.offset))
        updateDelivery = UpdateDelivery(
            store: home, logs: logs, home: runtime, limits: updateLimits, time: time, ticks: ticks, random: random)
        listings = SharedTurns(of: .listing, limits: turnLimits, scheduler: scheduler)
        updates = AppUpdates(
            store: home, documents: documents, logs: logs, delivery: updateDelivery, limits: updateLimits,
            previews: SharedTurns(of: .preview, limits: turnLimits, scheduler: scheduler), listings: listings, time: time,
            ticks: ticks, random: random)
        inboxPositions = InboxPositions(sealer: SecretSealer(keys: tokenKeys, for: .position, random: random))
        apps = AppRegistrar(apps: store, deletions: home, homes: homes, directory: directory, time: time)
        keys = KeyAuthority(keys: store, time: time, served: served, random: random)
        devices = DeviceRegistrar(
            devices: home, home: runtime, directory: directory, news: statusNews,
            formerChannels: formerChannels, subscriptions: subscriptions, allowances: allowances, vetoes: vetoes, time: time,
            random: random)
        channels = ChannelRegistrar(
            channels: home, directory: directory, home: runtime, formerChannels: formerChannels, sealer: sealer,
            allowances: allowances, time: time)
        publisher = Publisher(
            sealer: sealer, directory: directory, home: runtime, allowances: allowances,
            addresses: addresses, time: time)
        let secrets = SecretSealer(keys: tokenKeys, for: .watch, random: random)
        let news = ChannelNews(home: runtime, time: time)
        watches = WatchRegistrar(
            watches: home, publisher: publisher, news: news, sealer: secrets, settings: watchSettings, time: time,
            random: random)
        attachments = Attachments(
            records: store, files: attachmentFiles, limits: attachmentLimits, time: time, random: random)
        services = Services(store: home, documents: documents, home: runtime, allowances: allowances, time: time)
        pushes = home
        outbox = Outbox(store: home, shards: runtime.shards, limits: .init(underWay: gatewaySettings.underWay), time: time)
        gateways = Gateways(
            apps: store, documents: documents, keys: tokenKeys, isKeyRingWrapped: wrapping != nil, outbox: outbox,
            settings: gatewaySettings, time: time, random: random, logger: logger)
        work = LeasedWork(
            store: home, shards: runtime.shards,
            user: WatchWork(watches: home, shards: runtime.shards, news: news, sealer: secrets, random: random),
            limits: workLimits, time: time)
    }

    /// The purpose for which a process uses a domain.
    package enum Purpose: Sendable {
        /// The home of all devices. Earlier homes on the store write nothing from then on.
        case server
        /// An operator's command on the store of a server that does not run. Homes and the map of shards stay as they are.
        case command
    }

    /// Returns the handle for everything that works for devices, and the epoch of positions.
    private static func begin(_ purpose: Purpose, on store: any Store) async throws -> (home: any HomeStore, epoch: Int64) {
        switch purpose {
        case .server:
            let home = try await store.home(store.addIncarnation(of: .only))
            let epoch = try await store.claimEpoch()
            try await ShardMap.take(.all, to: .init(node: .only, epoch: epoch), by: home, in: store)
            return (home, epoch)
        case .command:
            // A suspended or resumed device gets a message, whose position must be later than all stored positions. Each
            // command claims an epoch, because positions are assigned where no code can wait for the store. There are 16
            // million epochs.
            return (store, try await store.claimEpoch())
        }
    }
}

extension ExpressionLimits {
    /// No condition of an item takes more than that of an evaluation, whatever its app allows.
    fileprivate static let ofItems: ExpressionLimits = {
        var limits = ExpressionLimits()
        limits.cost = ItemRules.mostCost
        return limits
    }()
}

extension TimeSource {
    package static let system = TimeSource {
        Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
    }
}

extension TickSource {
    package static let system = TickSource { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }
}

extension RandomSource {
    package static let system = RandomSource {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}

extension Scheduler {
    /// Runs the work on an event loop of the group: on the one that asks, which need not be woken for it.
    package static func on(_ group: any EventLoopGroup) -> Scheduler {
        Scheduler { delay, work in
            _ = (MultiThreadedEventLoopGroup.currentEventLoop ?? group.next()).scheduleTask(in: TimeAmount(delay), work)
        }
    }
}
