/// The waiting callbacks of apps and peers, while new callbacks enter one after the other. Beyond a limit, the oldest callback is
/// dropped for each one that enters.
struct CallbackQueues {
    /// A callback in a queue. A new callback has no serial number yet, and is identified by its index among the new ones.
    private enum Entry: Equatable {
        case stored(Int64)
        case new(Int)
    }

    private struct Queued {
        var entry: Entry
        var queue: CallbackQueue
    }

    private let limits: CallbackLimits
    private var counts: [CallbackQueue: Int]
    private var countsOfApps: [AppSerial: Int]
    /// The oldest entry is the first. A queue contains all entries, or more than will be dropped.
    private var queues: [CallbackQueue: [Entry]]
    private var apps: [AppSerial: [Queued]]

    /// The serial numbers of dropped callbacks.
    private(set) var removed: [Int64] = []
    private(set) var removedOfApps: [AppSerial: Int] = [:]
    /// The indices of dropped new callbacks.
    private(set) var removedNew: Set<Int> = []

    init(_ facts: ChannelEndFacts, _ limits: CallbackLimits) {
        self.limits = limits
        counts = facts.waiting
        countsOfApps = facts.usage.mapValues(\.callbacks)
        queues = facts.oldestOfQueues.mapValues { $0.map(Entry.stored) }
        apps = facts.oldestOfApps.mapValues { $0.map { Queued(entry: .stored($0.serial), queue: $0.queue) } }
    }

    mutating func enter(_ place: Int, _ queue: CallbackQueue) {
        counts[queue, default: 0] += 1
        countsOfApps[queue.app, default: 0] += 1
        queues[queue, default: []].append(.new(place))
        apps[queue.app, default: []].append(Queued(entry: .new(place), queue: queue))
        if counts[queue, default: 0] > limits.perPeer, let oldest = queues[queue]?.first {
            giveUp(Queued(entry: oldest, queue: queue))
        }
        if countsOfApps[queue.app, default: 0] > limits.perApp, let oldest = apps[queue.app]?.first { giveUp(oldest) }
    }

    private mutating func giveUp(_ oldest: Queued) {
        counts[oldest.queue]? -= 1
        countsOfApps[oldest.queue.app]? -= 1
        queues[oldest.queue]?.removeAll { $0 == oldest.entry }
        apps[oldest.queue.app]?.removeAll { $0.entry == oldest.entry }
        switch oldest.entry {
        case .stored(let serial):
            removed.append(serial)
            removedOfApps[oldest.queue.app, default: 0] += 1
        case .new(let place): removedNew.insert(place)
        }
    }
}
