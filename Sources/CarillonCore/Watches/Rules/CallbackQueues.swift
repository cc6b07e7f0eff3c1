/// The callbacks that wait for apps and peers, while new ones enter one after the other. Beyond a limit, the oldest is given up for
/// each one that enters.
struct CallbackQueues {
    /// A new callback has no number yet; it has its place among the new ones.
    private enum Entry: Equatable {
        case stored(Int64)
        case new(Int)
    }

    private struct Queued {
        var entry: Entry
        var lane: CallbackLane
    }

    private let limits: CallbackLimits
    private var counts: [CallbackLane: Int]
    private var countsOfApps: [AppSerial: Int]
    /// The oldest is the first. Either all entries are here, or more than are given up.
    private var lanes: [CallbackLane: [Entry]]
    private var apps: [AppSerial: [Queued]]

    /// Numbers of callbacks that are given up.
    private(set) var removed: [Int64] = []
    private(set) var removedOfApps: [AppSerial: Int] = [:]
    /// Places of new ones that are given up.
    private(set) var removedNew: Set<Int> = []

    init(_ facts: ChannelEndFacts, _ limits: CallbackLimits) {
        self.limits = limits
        counts = facts.waiting
        countsOfApps = facts.usage.mapValues(\.callbacks)
        lanes = facts.oldestOfLanes.mapValues { $0.map(Entry.stored) }
        apps = facts.oldestOfApps.mapValues { $0.map { Queued(entry: .stored($0.serial), lane: $0.lane) } }
    }

    mutating func enter(_ place: Int, _ lane: CallbackLane) {
        counts[lane, default: 0] += 1
        countsOfApps[lane.app, default: 0] += 1
        lanes[lane, default: []].append(.new(place))
        apps[lane.app, default: []].append(Queued(entry: .new(place), lane: lane))
        if counts[lane, default: 0] > limits.perPeer, let oldest = lanes[lane]?.first {
            giveUp(Queued(entry: oldest, lane: lane))
        }
        if countsOfApps[lane.app, default: 0] > limits.perApp, let oldest = apps[lane.app]?.first { giveUp(oldest) }
    }

    private mutating func giveUp(_ oldest: Queued) {
        counts[oldest.lane]? -= 1
        countsOfApps[oldest.lane.app]? -= 1
        lanes[oldest.lane]?.removeAll { $0 == oldest.entry }
        apps[oldest.lane.app]?.removeAll { $0.entry == oldest.entry }
        switch oldest.entry {
        case .stored(let serial):
            removed.append(serial)
            removedOfApps[oldest.lane.app, default: 0] += 1
        case .new(let place): removedNew.insert(place)
        }
    }
}
