import CarillonExpression

/// One item in memory: what stands in it, who waits on it, and what is to be done with it.
final class WatchedItem {
    /// Small, as there may be a million.
    struct Watch {
        var handle: ItemIndex.Handle
        fileprivate var shortRevision: UInt32

        func isOf(_ revision: Int64) -> Bool { shortRevision == UInt32(truncatingIfNeeded: revision) }
    }

    /// A subscription that is not to fire again before a moment; the store knows it as well.
    private struct Rest {
        var seconds: Int64
        var until: Timestamp
    }

    typealias Answer = @Sendable (Result<ItemReceipt, any Error>) -> Void

    enum Work {
        case update(ItemUpdate, ItemState.Mode, Answer)
        /// Something was armed: it may fire with what stands in the item.
        case look
    }

    let key: ItemKey
    /// As it is on disk.
    var stored: StoredItem
    var index: ItemIndex
    private(set) var watches: [SubscriptionSerial: Watch] = [:]
    private var rests: [SubscriptionSerial: Rest] = [:]
    private var queue: [Work] = []
    private var queuedUpdates = 0
    private var queuedBytes = 0
    var isDraining = false
    /// An update is being evaluated: what is armed and disarmed meanwhile waits.
    private var isEvaluating = false
    private var deferred: [(WatchedItem) -> Void] = []
    /// What it fired could not be told: its publishers wait until that is.
    var heldUp: Set<Int64> = []
    /// Nothing of it can be relied on any more; whoever wants it loads it anew.
    var isGone = false
    /// When it was last wanted, as the engine counts.
    var lastUse = 0

    init(_ key: ItemKey, _ stored: StoredItem, _ index: ItemIndex) {
        self.key = key
        self.stored = stored
        self.index = index
    }

    var isIdle: Bool { !isDraining && queue.isEmpty }

    /// About what it takes in memory, in bytes.
    var weight: Int { 1000 + 4 * stored.state.byteCount + 200 * watches.count + queuedBytes }

    // MARK: Work

    func hasRoom(for update: ItemUpdate) -> Bool {
        heldUp.isEmpty && queuedUpdates < ItemLimits.waitingUpdates
            && queuedBytes + update.byteCount <= ItemLimits.waitingBytes
    }

    func enqueue(_ work: Work) {
        if case .update(let update, _, _) = work {
            queuedUpdates += 1
            queuedBytes += update.byteCount
        }
        queue.append(work)
    }

    func takeBatch(_ limit: Int) -> [Work] {
        let batch = Array(queue.prefix(limit))
        queue.removeFirst(batch.count)
        for case .update(let update, _, _) in batch {
            queuedUpdates -= 1
            queuedBytes -= update.byteCount
        }
        return batch
    }

    /// Evaluates an update, so many conditions at once; between, others have their turn.
    func evaluate(_ bindings: ExpressionBindings, atOnce count: Int, pause: () async -> Void) async -> ItemIndex.Outcome {
        isEvaluating = true
        var pass = index.begin(bindings)
        while !index.advance(&pass, by: count) { await pause() }
        isEvaluating = false
        let deferred = deferred
        self.deferred = []
        for work in deferred { work(self) }
        return pass.outcome
    }

    /// When no update is being evaluated.
    func whenStill(_ work: @escaping (WatchedItem) -> Void) {
        if isEvaluating { deferred.append(work) } else { work(self) }
    }

    // MARK: Watches

    func arm(_ armed: ArmedSubscription, shape: Int?, constants: [ExpressionValue]) {
        let target = armed.target
        let handle = index.add(
            target.subscription.rawValue, armed.policy, shape: shape, constants: constants,
            wasWatched: armed.since < stored.version)
        // After that, as a shape goes with its last condition.
        disarm(target.subscription)
        watches[target.subscription] = Watch(
            handle: handle, shortRevision: UInt32(truncatingIfNeeded: target.revision))
        guard armed.coolDownSeconds > 0 else { return }
        rests[target.subscription] = Rest(
            seconds: armed.coolDownSeconds,
            until: armed.firedAt.map { $0.adding(seconds: armed.coolDownSeconds) } ?? Timestamp(milliseconds: .min))
    }

    func disarm(_ subscription: SubscriptionSerial) {
        guard let watch = watches.removeValue(forKey: subscription) else { return }
        rests[subscription] = nil
        index.remove(watch.handle)
    }

    /// It was not told that it fired: nothing holds it back.
    func wakeUp(_ subscription: SubscriptionSerial) { rests[subscription]?.until = Timestamp(milliseconds: .min) }

    /// Those that fired, with the revisions that they were watched with, but for those that rest.
    func targets(of fired: [ItemIndex.Fired], at now: Timestamp) -> [Firing.Target] {
        fired.compactMap { fired in
            let serial = SubscriptionSerial(fired.subscription)
            if !rests.isEmpty, let rest = rests[serial], now < rest.until, now >= rest.until.adding(seconds: -rest.seconds) {
                return nil
            }
            return watches[serial].map { Firing.Target(subscription: serial, revision: Int64($0.shortRevision)) }
        }
    }

    /// What fired is on disk: what fires once is watched no more.
    func fired(_ targets: [Firing.Target], at now: Timestamp) {
        for target in targets {
            guard let watch = watches[target.subscription], watch.isOf(target.revision) else { continue }
            if index.policy(of: watch.handle) == .once {
                disarm(target.subscription)
            } else if let rest = rests[target.subscription] {
                rests[target.subscription]?.until = now.adding(seconds: rest.seconds)
            }
        }
    }

    /// Nothing of the updates since the last commit counts: the index stands where it stood before them, and what fired is looked
    /// at again.
    func takeBack(_ fired: [ItemIndex.Fired], to bindings: ExpressionBindings?) {
        var again = fired
        if let bindings {
            let rewound = index.update(bindings)
            again += rewound.fired.filter { index.policy(of: $0.handle) == .once }
        }
        for fired in again where watches[SubscriptionSerial(fired.subscription)]?.handle == fired.handle {
            index.takeBack(fired.handle)
        }
    }
}
