import CarillonCore
import Logging
import ServiceLifecycle

/// Does what is due for the devices and items of a home, a few rows at a time beside other writes. ``StoreSweeper`` does what concerns the
/// whole store.
///
/// Once a minute it searches for devices that nobody uses any more. ``ServedTime`` decides whether rows are removed for good.
struct Sweeper: Service {
    let domain: HomeDomain
    let collector: DeviceCollector
    let settings: ServerSettings
    let logger: Logger

    private static let rowsAtOnce = 500

    private var report: SweepReport { SweepReport(logger: logger) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // What a heavy item fired takes long, and others have their time meanwhile.
            async let firings: Void = notifyFirings()
            async let held: Void = notifyThrottledFirings()
            async let updates: Void = sweepUpdates()
            async let services: Void = sweepServices()
            async let looks: Void = lookAtSubscriptions()
            async let subscriptions: Void = removeSubscriptions()
            async let idleItems: Void = deleteIdleItems()
            var nextCollection = ContinuousClock.now
            while !Task.isCancelled {
                // What fails holds up nothing else.
                await report("devices") {
                    try await domain.devices.writeSeen()
                    guard ContinuousClock.now >= nextCollection else { return }
                    nextCollection = .now + .seconds(60)
                    try await collector.collect()
                }
                await report("statuses") {
                    while !Task.isCancelled, try await domain.statusNews.notify() == StatusNews.atOnce {}
                }
                await report("deletions at other homes") { try await domain.deletions.notifyAgain() }
                await report("channels of former users") { try await domain.formerChannels.closeAll() }
                await report("pushes") {
                    while !Task.isCancelled {
                        let isDone = try await domain.pushes.sweepPushes(
                            in: domain.runtime.shards, at: domain.time.now(), forgetting: domain.served.retention(),
                            limit: Self.rowsAtOnce)
                        if isDone { break }
                    }
                }
                try? await Task.sleep(for: .seconds(settings.sweepSeconds))
            }
            await firings
            await held
            await updates
            await services
            await looks
            await subscriptions
            await idleItems
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

    private func notifyFirings() async {
        while !Task.isCancelled {
            await report("firings") { try await domain.itemEngine.notifyRest() }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    /// What begins to wait meanwhile waits a quarter of a second longer at the most.
    private func notifyThrottledFirings() async {
        while !Task.isCancelled {
            var next: Timestamp?
            await report("throttled firings") { next = try await domain.firings.notifyHeld() }
            let wait = next.map { $0.milliseconds - domain.time.now().milliseconds } ?? 250
            try? await Task.sleep(for: .milliseconds(min(max(wait, 5), 250)))
        }
    }

    /// Searches once after the start. With several homes, it also searches the shards that the home takes later.
    private func lookAtSubscriptions() async {
        var isDone = false
        while !Task.isCancelled {
            await report("subscriptions that never fired") {
                if !isDone {
                    try await domain.itemEngine.lookAtNeverFired()
                    isDone = true
                }
                try await domain.itemEngine.evaluateTaken()
            }
            if isDone, domain.homes.isOne { return }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    /// An item with a million subscriptions may be closed.
    private func removeSubscriptions() async {
        while !Task.isCancelled {
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
            await report("updates") { try await domain.updateDelivery.sweep() }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }
}
