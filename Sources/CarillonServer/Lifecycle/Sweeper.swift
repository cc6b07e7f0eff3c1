import CarillonCore
import Logging
import Metrics
import ServiceLifecycle

/// Ends what has expired, forgets what was kept long enough, and finishes deletions, a little at a time beside the other writes.
///
/// Once a minute it looks for anonymous devices that nobody uses any more.
struct Sweeper: Service {
    let store: any InboxStore
    let domain: Domain
    let settings: ServerSettings
    let logger: Logger

    private let collected = ServerMetric.devicesCollected.counter()
    private static let rowsAtOnce = 500
    private static let devicesAtOnce = 100

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // What a heavy item fired takes long, and others have their time meanwhile.
            async let firings: Void = tellFirings()
            async let held: Void = tellHeldFirings()
            async let updates: Void = sweepUpdates()
            async let waking: Void = wakeForUpdates()
            async let attachments: Void = sweepAttachments()
            async let services: Void = sweepServices()
            var nextCollection = ContinuousClock.now
            while !Task.isCancelled {
                // What fails holds up nothing else.
                await report("devices") {
                    try await domain.devices.writeSeen()
                    guard ContinuousClock.now >= nextCollection else { return }
                    nextCollection = .now + .seconds(60)
                    try await collect()
                }
                await report("deletions") {
                    while !Task.isCancelled { if try await domain.apps.continueDeletions() { break } }
                }
                await report("time") { try await sweep() }
                await report("statuses") {
                    while !Task.isCancelled, try await domain.statusNews.tell() == StatusNews.atOnce {}
                }
                await report("subscriptions") {
                    try await domain.subscriptions.endExpired()
                    try await domain.subscriptions.removeEnded()
                }
                await report("channels of former users") { try await domain.formerChannels.closeAll() }
                await report("pushes") {
                    while !Task.isCancelled {
                        if try await domain.pushes.sweepPushes(at: domain.time.now(), limit: Self.rowsAtOnce) { break }
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
        }
    }

    /// Files that nobody knows are looked for at the start, when none can be new, and every few hours.
    private func sweepAttachments() async {
        await removeOrphans(before: domain.time.now())
        var next = ContinuousClock.now + Self.betweenOrphans
        while !Task.isCancelled {
            await report("attachments") {
                // A little at a time: others commit meanwhile.
                while !Task.isCancelled, try await !domain.attachments.sweep() {
                    try? await Task.sleep(for: .milliseconds(5))
                }
            }
            if ContinuousClock.now >= next {
                await removeOrphans(before: domain.time.now().adding(seconds: -3600))
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
            await report("requests of services") { while !Task.isCancelled, try await !domain.services.sweep() {} }
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

    private func sweepUpdates() async {
        while !Task.isCancelled {
            await report("updates") { try await domain.updateDelivery.sweep() }
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

    private func report(_ what: String, _ work: () async throws -> Void) async {
        do {
            try await work()
        } catch {
            logger.error("sweep failed", metadata: ["of": "\(what)", "reason": "\(error)"])
        }
    }

    private func sweep() async throws {
        while !Task.isCancelled {
            let swept = try await store.sweep(at: domain.time.now(), limit: Self.rowsAtOnce)
            for envelope in swept.expired {
                domain.homes.home(of: envelope.device).sessions.session(of: envelope.device)?
                    .withdrew(.envelope(envelope.position)) {}
            }
            if swept.isDone { break }
        }
    }

    private func collect() async throws {
        while !Task.isCancelled {
            let count = try await domain.devices.collectIdle(
                idleSeconds: settings.anonymousIdleSeconds, unusedSeconds: settings.anonymousUnusedSeconds,
                limit: Self.devicesAtOnce)
            collected.increment(by: count)
            if count < Self.devicesAtOnce { break }
        }
        while !Task.isCancelled {
            let count = try await domain.devices.collectInactive(
                inactiveSeconds: settings.inactiveSeconds, suspendedSeconds: settings.suspendedSeconds,
                limit: Self.devicesAtOnce)
            collected.increment(by: count)
            if count < Self.devicesAtOnce { break }
        }
    }
}
