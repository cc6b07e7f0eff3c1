import CarillonCore
import Logging
import ServiceLifecycle

/// Repeats the due work of the whole store: rows that belong to no shard, or are not found by shard. Each transaction changes a
/// limited number of rows, so that other writes are not delayed. A process has one. ``Sweeper`` does the due work of the shards of a
/// home.
///
/// It uses the handle of one home, and finds connections of any home through ``Homes``. ``ServedTime`` decides whether rows are
/// removed.
struct StoreSweeper: Service {
    /// The handle of the home.
    let store: any InboxStore
    let domain: HomeDomain
    let settings: ServerSettings
    let logger: Logger

    private static let rowsAtOnce = 500

    private var report: SweepReport { SweepReport(logger: logger, seconds: settings.sweepSeconds) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            async let _ = endUpdates()
            async let _ = wakeForUpdates()
            async let _ = sweepAttachments()
            // Ends the subscriptions on items that rules closed, if the server was killed before it ended them.
            async let _ = report.repeating("rules for items") { try await domain.subscriptions.applyRules() }
            await report.repeating {
                domain.log.flush()
                // A step that fails does not delay the others.
                await report("served time") { try await tendServedTime() }
                await report("deletions") {
                    while !Task.isCancelled { if try await domain.deletions.proceed() { break } }
                }
                await report("time") { try await sweep() }
            }
        }
    }

    private func tendServedTime() async throws {
        if let step = domain.served.takeStep() {
            logger.warning(
                "the wall clock was changed; removing nothing for an hour",
                metadata: ["seconds": "\(step)"])
        }
        try await domain.served.write()
    }

    private func sweep() async throws {
        // An outcome from before the end of a TTL counts, also if it could not be written until now.
        for home in domain.homes.here { await home.writeUnwritten() }
        while !Task.isCancelled {
            let swept = try await store.sweep(
                at: domain.time.now(), forgetting: domain.served.retention(), limit: Self.rowsAtOnce)
            for envelope in swept.expired {
                domain.homes.localHome(of: envelope.device)?.expired(envelope.position, of: envelope.device)
            }
            if swept.isDone { break }
        }
    }

    /// Removes files without an attachment at the start, when none of them can be new, and every few hours.
    private func sweepAttachments() async {
        await removeOrphans(before: domain.time.now())
        var next = ContinuousClock.now + Self.betweenOrphans
        await report.repeating {
            await report("attachments") {
                // The pause leaves the store to other commits.
                while !Task.isCancelled, try await !domain.attachments.sweep(forgetting: domain.served.retention()) {
                    try? await Task.sleep(for: .milliseconds(5))
                }
            }
            if ContinuousClock.now >= next, let retention = domain.served.retention() {
                await removeOrphans(before: retention.now.adding(seconds: -3600))
                next = .now + Self.betweenOrphans
            }
        }
    }

    private static let betweenOrphans = Duration.seconds(6 * 3600)

    private func removeOrphans(before moment: Timestamp) async {
        await report("files of attachments") {
            var place: String?
            repeat {
                place = try await domain.attachments.removeOrphans(after: place, before: moment)
            } while place != nil && !Task.isCancelled
        }
    }

    /// Homes remove ended updates from inboxes during the pause between the end of updates and their removal.
    private func endUpdates() async {
        while !Task.isCancelled {
            await report("expired updates") { try await domain.updateDelivery.endExpired() }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
            await report("ended updates") { try await domain.updateDelivery.forgetEnded(by: domain.served.retention()) }
        }
    }

    /// Wakes devices for updates, a part at a time, because an app can have a million devices.
    private func wakeForUpdates() async {
        while !Task.isCancelled {
            var isMore = false
            await report("waking for updates") { isMore = try await domain.updateDelivery.wakeSome() }
            try? await Task.sleep(for: isMore ? .milliseconds(50) : .seconds(settings.sweepSeconds))
        }
    }
}
