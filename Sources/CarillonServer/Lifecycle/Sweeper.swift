import CarillonCore
import Logging
import ServiceLifecycle

/// Performs the periodic work for the devices and items of a home, a few rows at a time between other writes. ``StoreSweeper``
/// performs the work for the whole store.
///
/// Once a minute the sweeper searches for unused devices. ``ServedTime`` decides whether rows are removed permanently.
struct Sweeper: Service {
    let domain: HomeDomain
    let collector: DeviceCollector
    let settings: ServerSettings
    let logger: Logger

    private static let rowsAtOnce = 500

    private var report: SweepReport { SweepReport(logger: logger) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // The work runs concurrently, because the firings of a large item can take long.
            async let firings: Void = notifyFirings()
            async let held: Void = notifyThrottledFirings()
            async let updates: Void = sweepUpdates()
            async let services: Void = sweepServices()
            async let looks: Void = checkSubscriptions()
            async let subscriptions: Void = removeSubscriptions()
            async let idleItems: Void = deleteIdleItems()
            var nextCollection = ContinuousClock.now
            while !Task.isCancelled {
                // A failed step does not delay others.
                await report("devices") {
                    try await domain.devices.writeSeen()
                    guard ContinuousClock.now >= nextCollection else { return }
                    nextCollection = .now + .seconds(60)
                    try await collector.collect()
                }
                await report("statuses") {
                    while !Task.isCancelled, try await domain.statusNotifier.notify() == StatusNotifier.atOnce {}
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

    /// A firing that becomes throttled meanwhile waits at most a quarter of a second longer.
    private func notifyThrottledFirings() async {
        while !Task.isCancelled {
            var next: Timestamp?
            await report("throttled firings") { next = try await domain.firings.notifyThrottled() }
            let wait = next.map { $0.milliseconds - domain.time.now().milliseconds } ?? 250
            try? await Task.sleep(for: .milliseconds(min(max(wait, 5), 250)))
        }
    }

    /// Searches once after the start. With several homes, also searches the shards that the home receives later.
    private func checkSubscriptions() async {
        var isDone = false
        while !Task.isCancelled {
            await report("subscriptions that never fired") {
                if !isDone {
                    try await domain.itemEngine.checkNeverFired()
                    isDone = true
                }
                try await domain.itemEngine.evaluateTaken()
            }
            if isDone, domain.homes.isOne { return }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    /// Removes ended subscriptions. A closed item can have a million of them.
    private func removeSubscriptions() async {
        while !Task.isCancelled {
            await report("expired subscriptions") { try await domain.subscriptions.endExpired() }
            await report("subscriptions") { try await domain.subscriptions.removeEnded() }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
        }
    }

    /// Deletes idle items. The search is rare, because it reads all items of an app.
    private func deleteIdleItems() async {
        while !Task.isCancelled {
            await report("idle items") {
                // Nothing is removed permanently while the wall clock is not reliable.
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
