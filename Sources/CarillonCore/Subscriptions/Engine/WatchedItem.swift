import CarillonExpression

/// One item in memory: what stands in it, who waits on it, and what is to be done with it.
final class WatchedItem {
    struct Watch {
        var handle: ItemIndex.Handle
        var revision: Int64
        var policy: ItemIndex.Policy
    }

    enum Work {
        case update(ItemUpdate, ItemState.Mode, CheckedContinuation<ItemReceipt, any Error>)
        /// Something was armed: it may fire with what stands in the item.
        case look
    }

    let key: ItemKey
    /// As it is on disk.
    var stored: StoredItem
    var index: ItemIndex
    private(set) var watches: [SubscriptionSerial: Watch] = [:]
    private var queue: [Work] = []
    private var queuedUpdates = 0
    private var queuedBytes = 0
    var isDraining = false
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

    // MARK: Work

    func hasRoom(for update: ItemUpdate) -> Bool {
        queuedUpdates < ItemLimits.waitingUpdates && queuedBytes + update.byteCount <= ItemLimits.waitingBytes
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

    // MARK: Watches

    func arm(
        _ target: Firing.Target, _ policy: ItemIndex.Policy, shape: Int?, constants: [ExpressionValue], wasWatched: Bool
    ) {
        disarm(target.subscription)
        let handle = index.add(
            target.subscription.rawValue, policy, shape: shape, constants: constants, wasWatched: wasWatched)
        watches[target.subscription] = Watch(handle: handle, revision: target.revision, policy: policy)
    }

    func disarm(_ subscription: SubscriptionSerial) {
        guard let watch = watches.removeValue(forKey: subscription) else { return }
        index.remove(watch.handle)
    }

    /// Those that fired, with the revisions that they were watched with; those that fire once are watched no more once
    /// ``fired(_:)`` is said.
    func targets(of fired: [ItemIndex.Fired]) -> [Firing.Target] {
        fired.compactMap { fired in
            let serial = SubscriptionSerial(fired.subscription)
            return watches[serial].map { Firing.Target(subscription: serial, revision: $0.revision) }
        }
    }

    func fired(_ targets: [Firing.Target]) {
        for target in targets where watches[target.subscription].map({ $0.policy == .once }) == true {
            if watches[target.subscription]?.revision == target.revision { disarm(target.subscription) }
        }
    }

    /// Nothing of the updates since the last commit counts: the index stands where it stood before them, and what fired is looked
    /// at again.
    func takeBack(_ fired: [ItemIndex.Fired], to bindings: ExpressionBindings?) {
        var again = fired
        if let bindings {
            let rewound = index.update(bindings)
            again += rewound.fired.filter { watches[SubscriptionSerial($0.subscription)]?.policy == .once }
        }
        for fired in again where watches[SubscriptionSerial(fired.subscription)]?.handle == fired.handle {
            index.takeBack(fired.handle)
        }
    }
}
