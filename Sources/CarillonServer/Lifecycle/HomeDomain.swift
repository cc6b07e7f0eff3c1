package import CarillonCore
import CarillonExpression

/// The objects of a home: its inboxes and connections, and the features for its devices, items, updates and attachments.
///
/// A feature uses the home as a ``LocalHome``, and the home's store through the feature's own store protocol. All members of
/// ``Domain`` are also members of this type.
@dynamicMemberLookup
package final class HomeDomain: Sendable {
    /// The objects that all homes of the process share.
    package let shared: Domain
    package let runtime: HomeRuntime
    /// The home as features and requests use it.
    package let home: any LocalHome
    /// The other homes of the server.
    let others: OtherHomes
    let directory: ChannelDirectory
    package let devices: DeviceRegistrar
    package let channels: ChannelRegistrar
    package let publisher: Publisher
    package let statusNotifier: StatusNotifier
    package let formerChannels: FormerChannels
    package let deletions: AppDeletions
    package let watches: WatchRegistrar
    package let work: LeasedWork<WatchWork>
    package let outbox: Outbox
    /// The states of pushes.
    package let pushes: any PushStore
    package let items: AppItems
    package let itemEngine: ItemEngine
    package let firings: Firings
    package let subscriptions: SubscriptionRegistrar
    package let updates: AppUpdates
    package let updateDelivery: UpdateDelivery
    package let services: Services
    package let attachments: Attachments

    // Members of `shared` that requests and connections read often. They are also stored here, because any other member is read
    // through a key path, which is slower.
    package let homes: Homes
    package let keys: KeyAuthority
    package let answers: AnswerMemory
    package let inboxPositions: InboxPositions
    package let history: Int64
    package let time: TimeSource
    let ticks: TickSource

    /// The limits of a home.
    struct Settings: Sendable {
        var watches = WatchRegistrar.Settings()
        var work = WorkPace.Limits()
        var items = ItemEngine.Limits()
        var updates = UpdateLimits()
        var attachments = AttachmentLimits()
        var outbox = Outbox.Limits()
    }

    /// - Parameters:
    ///   - runtime: A home that `shared.homes` returns.
    ///   - records: The records of attachments, which belong to no home.
    init(
        _ shared: Domain, runtime: HomeRuntime, records: any AttachmentRecordStore, attachmentFiles: any AttachmentFiles,
        settings: Settings
    ) {
        let (store, random) = (runtime.store, RandomSource.system)
        let shards: @Sendable () -> ShardSet = { runtime.shards }
        let (documents, rateLimits, time, ticks) = (shared.documents, shared.rateLimits, shared.time, shared.ticks)
        self.shared = shared
        self.runtime = runtime
        home = runtime
        others = OtherHomes(shared.homes, beside: runtime)
        homes = shared.homes
        keys = shared.keys
        answers = shared.answers
        inboxPositions = shared.inboxPositions
        history = shared.history
        self.time = time
        self.ticks = ticks
        directory = ChannelDirectory(store: store)
        statusNotifier = StatusNotifier(devices: store, home: runtime, others: others)
        formerChannels = FormerChannels(store: store, home: runtime, directory: directory, time: time)
        deletions = AppDeletions(
            apps: shared.apps, deletions: store, directory: directory, home: runtime, others: others, time: time)
        let conditions = ItemConditions(limits: .ofItems, zoneOffset: TimeZones.offset)
        let payloadSize: Firings.PayloadSize = { PushRendering.payloadSize(of: $0) }
        firings = Firings(
            store: store, home: runtime, others: others, conditions: conditions, styles: FoundationStyles.styles,
            payloadSize: payloadSize, time: time)
        itemEngine = ItemEngine(
            store: store, home: runtime, hasAllShards: homes.isOne, documents: documents, firings: firings,
            conditions: conditions, time: time, ticks: ticks, logger: shared.logger, limits: settings.items)
        items = AppItems(store: store, documents: documents, engine: itemEngine, rateLimits: rateLimits, time: time)
        subscriptions = SubscriptionRegistrar(
            store: store, engine: itemEngine, items: items, home: runtime, others: others, rateLimits: rateLimits,
            approvalHooks: shared.approvalHooks, payloadSize: payloadSize, time: time, random: random)
        let logs = UpdateLogs(
            store: store, documents: documents, language: AudienceLanguage(zoneOffset: TimeZones.offset),
            isShared: !homes.isOne)
        updateDelivery = UpdateDelivery(
            store: store, logs: logs, home: runtime, others: others, limits: settings.updates, time: time, ticks: ticks,
            random: random)
        updates = AppUpdates(
            store: store, documents: documents, logs: logs, delivery: updateDelivery, limits: settings.updates,
            previews: shared.previews, listings: shared.listings, time: time, ticks: ticks, random: random)
        devices = DeviceRegistrar(
            devices: store, home: runtime, others: others, directory: directory, notifier: statusNotifier,
            formerChannels: formerChannels, subscriptions: subscriptions, rateLimits: rateLimits,
            approvalHooks: shared.approvalHooks,
            time: time, random: random)
        channels = ChannelRegistrar(
            channels: store, directory: directory, home: runtime, formerChannels: formerChannels, sealer: shared.tokens,
            rateLimits: rateLimits, time: time)
        publisher = Publisher(
            sealer: shared.tokens, directory: directory, home: runtime, rateLimits: rateLimits,
            addresses: shared.addresses, time: time)
        let notifier = ChannelNotifier(home: runtime, time: time)
        watches = WatchRegistrar(
            watches: store, publisher: publisher, notifier: notifier, sealer: shared.watchSecrets,
            settings: settings.watches,
            time: time, random: random)
        work = LeasedWork(
            store: store, shards: shards,
            user: WatchWork(watches: store, shards: shards, notifier: notifier, sealer: shared.watchSecrets, random: random),
            limits: settings.work, time: time)
        attachments = Attachments(
            records: records, files: attachmentFiles, limits: settings.attachments, time: time, random: random,
            isOwn: { runtime.has($0) }, isOpen: { runtime.isOpen(Shard(of: $0)) })
        services = Services(
            store: store, documents: documents, home: runtime, others: others, rateLimits: rateLimits, time: time)
        pushes = store
        outbox = Outbox(store: store, shards: shards, limits: settings.outbox, time: time)
        shared.gateways.serve(outbox)
        runtime.take(makeAnswers())
        runtime.inform(
            ArrivalListener(
                admitted: { [seen = devices.seen] device, proof in seen.saw(device, by: proof) },
                arrived: { [weak updateDelivery] device, version, session in
                    guard let updateDelivery, UpdateDelivery.isKnown(toVersion: version) else { return }
                    // The task adds updates that were published during the device's absence to its inbox, and ends. On the event
                    // loop of a socket, it begins after the session has received its first page.
                    Task(executorPreference: session.executor) { await updateDelivery.connected(device) }
                }))
    }

    package subscript<Value>(dynamicMember path: KeyPath<Domain, Value>) -> Value { shared[keyPath: path] }
}

extension ExpressionLimits {
    /// The limits of item conditions. A condition never uses more than an evaluation can, independent of the settings of its app.
    fileprivate static let ofItems: ExpressionLimits = {
        var limits = ExpressionLimits()
        limits.cost = ItemRules.mostCost
        return limits
    }()
}
