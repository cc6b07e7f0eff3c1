import CarillonCore
import Logging
import Metrics
import ServiceLifecycle

/// Ends what has expired, forgets what was kept long enough, and finishes deletions, a little at a time beside the other writes.
///
/// Once a minute it looks for devices that nobody uses any more. What is removed for good is removed by ``ServedTime``.
struct Sweeper: Service {
    let store: any InboxStore
    let domain: HomeDomain
    let collector: DeviceCollector
    let settings: ServerSettings
    let logger: Logger

    private static let rowsAtOnce = 500

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // What a heavy item fired takes long, and others have their time meanwhile.
            async let firings: Void = tellFirings()
            async let held: Void = tellHeldFirings()
            async let updates: Void = sweepUpdates()
            async let waking: Void = wakeForUpdates()
            async let attachments: Void = sweepAttachments()
            async let services: Void = sweepServices()
            async let looks: Void = lookAtSubscriptions()
            async let idleItems: Void = deleteIdleItems()
            async let subscriptions: Void = removeSubscriptions()
            var nextCollection = ContinuousClock.now
            while !Task.isCancelled {
                domain.log.flush()
                // What fails holds up nothing else.
                await report("served time") { try await tendServedTime() }
                await report("devices") {
                    try await domain.devices.writeSeen()
                    guard ContinuousClock.now >= nextCollection else { return }
                    nextCollection = .now + .seconds(60)
                    try await collector.collect()
                }
                await report("deletions") {
                    while !Task.isCancelled { if try await domain.deletions.proceed() { break } }
                }
                await report("time") { try await sweep() }
                await report("statuses") {
                    while !Task.isCancelled, try await domain.statusNews.tell() == StatusNews.atOnce {}
                }
                await report("channels of former users") { try await domain.formerChannels.closeAll() }
                await report("pushes") {
                    while !Task.isCancelled {
                        let isDone = try await domain.pushes.sweepPushes(
                            in: domain.homes.shards, at: domain.time.now(), forgetting: domain.served.retention(),
                            limit: Self.rowsAtOnce)
                        if isDone { break }
                    }
                }
                try? await Task.sleep(for: .seconds(settings.sweepSeconds))
            }
            await firings
            await held
            await updates
            await waking
            await attachments
            await services
            await looks
            await idleItems
            await subscriptions
        }
    }

    /// Files that nobody knows are looked for at the start, when none can be new, and every few hours.
    private func sweepAttachments() async {
        await removeOrphans(before: domain.time.now())
        var next = ContinuousClock.now + Self.betweenOrphans
        while !Task.isCancelled {
            await report("attachments") {
                // A little at a time: others commit meanwhile.
                while !Task.isCancelled, try await !domain.attachments.sweep(forgetting: domain.served.retention()) {
                    try? await Task.sleep(for: .milliseconds(5))
                }
            }
            if ContinuousClock.now >= next, let retention = domain.served.retention() {
                await removeOrphans(before: retention.now.adding(seconds: -3600))
                next = .now + Self.betweenOrphans
            }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    private static let betweenOrphans = Duration.seconds(6 * 3600)

    private func removeOrphans(before moment: Timestamp) async {
        await report("files of attachments") {
            var place = -1
            while !Task.isCancelled, let next = try await domain.attachments.removeOrphans(after: place, before: moment) {
                place = next
            }
        }
    }

    private func sweepServices() async {
        while !Task.isCancelled {
            await report("requests of services") {
                while !Task.isCancelled, try await !domain.services.sweep(forgetting: domain.served.retention()) {}
            }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    private func tellFirings() async {
        while !Task.isCancelled {
            await report("firings") { try await domain.itemEngine.tellRest() }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    /// What begins to wait meanwhile waits a quarter of a second longer at the most.
    private func tellHeldFirings() async {
        while !Task.isCancelled {
            var next: Timestamp?
            await report("held firings") { next = try await domain.firings.tellHeld() }
            let wait = next.map { $0.milliseconds - domain.time.now().milliseconds } ?? 250
            try? await Task.sleep(for: .milliseconds(min(max(wait, 5), 250)))
        }
    }

    /// Once, after the start.
    private func lookAtSubscriptions() async {
        var isDone = false
        while !Task.isCancelled, !isDone {
            await report("subscriptions that never fired") {
                try await domain.itemEngine.lookAtNeverFired()
                isDone = true
            }
            if !isDone { try? await Task.sleep(for: .seconds(settings.sweepSeconds)) }
        }
    }

    /// An item with a million subscriptions may be closed.
    private func removeSubscriptions() async {
        while !Task.isCancelled {
            await report("rules for items") { try await domain.subscriptions.applyRules() }
            await report("expired subscriptions") { try await domain.subscriptions.endExpired() }
            await report("subscriptions") { try await domain.subscriptions.removeEnded() }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    /// A search looks at all items of an app, so that it is done seldom.
    private func deleteIdleItems() async {
        while !Task.isCancelled {
            await report("idle items") {
                // Nothing is removed for good while the wall clock cannot be relied on.
                guard let retention = domain.served.retention() else { return }
                try await domain.items.deleteIdle(at: retention.now, onlyDue: true)
            }
            try? await Task.sleep(for: .seconds(max(settings.sweepSeconds, Self.secondsBetweenIdleItems)))
        }
    }

    private static let secondsBetweenIdleItems = 30

    private func sweepUpdates() async {
        while !Task.isCancelled {
            await report("updates") { try await domain.updateDelivery.sweep(forgetting: domain.served.retention()) }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    /// At a pace that leaves others their time: an app may have a million devices.
    private func wakeForUpdates() async {
        while !Task.isCancelled {
            var isMore = false
            await report("waking for updates") { isMore = try await domain.updateDelivery.wakeSome() }
            try? await Task.sleep(for: isMore ? .milliseconds(50) : .seconds(settings.sweepSeconds))
        }
    }

    private func tendServedTime() async throws {
        if let step = domain.served.takeStep() {
            logger.warning(
                "the wall clock was set; nothing is removed for good for an hour",
                metadata: ["seconds": "\(step)"])
        }
        try await domain.served.write()
    }

    private func report(_ what: String, _ work: () async throws -> Void) async {
        do {
            try await work()
        } catch {
            logger.error("sweep failed", metadata: ["of": "\(what)", "reason": "\(error)"])
        }
    }

    private func sweep() async throws {
        // An outcome from before the end of a TTL counts, also when it could not be written until now.
        for home in domain.homes.here { await home.writeUnwritten() }
        while !Task.isCancelled {
            let swept = try await store.sweep(
                at: domain.time.now(), forgetting: domain.served.retention(), limit: Self.rowsAtOnce)
            for envelope in swept.expired {
                domain.homes.home(of: envelope.device).expired(envelope.position, of: envelope.device)
            }
            if swept.isDone { break }
        }
    }
}
