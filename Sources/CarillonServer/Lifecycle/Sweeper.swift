import CarillonCore
import Logging
import ServiceLifecycle

/// Performs the periodic work for the devices and items of a home, a few rows at a time between other writes. ``StoreSweeper``
/// performs the work for the whole store.
///
/// Once a minute the sweeper searches for unused devices. ``ServedTime`` decides whether rows are removed permanently.
struct Sweeper: Service {
    let domain: HomeDomain
    let unusedDevices: UnusedDeviceRemover
    let settings: ServerSettings
    let logger: Logger

    private static let rowsAtOnce = 500

    private var report: SweepReport { SweepReport(logger: logger, seconds: settings.sweepSeconds) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // The work runs concurrently, because the firings of a large item can take long.
            async let _ = report.repeating("firings") { try await domain.itemEngine.notifyRest() }
            async let _ = notifyThrottledFirings()
            async let _ = report.repeating("updates") { try await domain.updateDelivery.sweep() }
            async let _ = report.repeating("requests of services") {
                while !Task.isCancelled, try await !domain.services.sweep(forgetting: domain.served.retention()) {}
            }
            async let _ = checkSubscriptions()
            // A closed item can have a million ended subscriptions.
            async let _ = report.repeating {
                await report("expired subscriptions") { try await domain.subscriptions.endExpired() }
                await report("subscriptions") { try await domain.subscriptions.removeEnded() }
            }
            async let _ = deleteIdleItems()
            var nextRemoval = ContinuousClock.now
            await report.repeating {
                // A failed step does not delay others.
                await report("devices") {
                    try await domain.devices.writeSeen()
                    guard ContinuousClock.now >= nextRemoval else { return }
                    nextRemoval = .now + .seconds(60)
                    try await unusedDevices.remove()
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
            }
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

    /// Deletes idle items. The search is rare, because it reads all items of an app.
    private func deleteIdleItems() async {
        await report.repeating("idle items", pause: 30) {
            // Nothing is removed permanently while the wall clock is not reliable.
            guard let retention = domain.served.retention() else { return }
            try await domain.items.deleteIdle(at: retention.now, onlyDue: true)
        }
    }
}
