import CarillonCore
import Logging
import ServiceLifecycle

/// Does what is due in the whole store, a few rows at a time beside other writes: what belongs to no shard, or is not found by shard. A
/// process has one. ``Sweeper`` does what is due for the shards of a home.
///
/// It uses the handle of one home, and finds connections of any home through ``Homes``. ``ServedTime`` decides whether rows are removed for
/// good.
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
            // Ends the subscriptions on items that rules closed and a killed server left.
            async let _ = report.repeating("rules for items") { try await domain.subscriptions.applyRules() }
            await report.repeating {
                domain.log.flush()
                // What fails holds up nothing else.
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
        // An outcome from before the end of a TTL counts, also when it could not be written until now.
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

    /// Files that nobody knows are looked for at the start, when none can be new, and every few hours.
    private func sweepAttachments() async {
        await removeOrphans(before: domain.time.now())
        var next = ContinuousClock.now + Self.betweenOrphans
        await report.repeating {
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

    /// Between the end of updates and the removal of ended updates there is a wait, in which homes take ended updates out of inboxes.
    private func endUpdates() async {
        while !Task.isCancelled {
            await report("expired updates") { try await domain.updateDelivery.endExpired() }
            try? await Task.sleep(for: .seconds(settings.sweepSeconds))
            await report("ended updates") { try await domain.updateDelivery.forgetEnded(by: domain.served.retention()) }
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
}
