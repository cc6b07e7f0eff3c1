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
    /// Says whether the item was deleted.
    typealias DeletionAnswer = @Sendable (Result<Bool, any Error>) -> Void

    enum Work {
        case update(ItemUpdate, ItemState.Mode, Answer)
        /// These were armed: they may fire with what stands in the item.
        case look([SubscriptionSerial])
        /// Their crossing was refused between two batches of updates: they can fire with the next update.
        case giveBack(Set<Firing.Target>)
        /// The item is to be deleted; with a moment only if its last update came by then, and it has no subscription.
        case delete(ifIdleSince: Timestamp?, DeletionAnswer)

        fileprivate var isDeletion: Bool { if case .delete = self { true } else { false } }
    }

    let key: ItemKey
    /// As it is on disk.
    var stored: StoredItem
    /// The version that the index evaluated last. It is above the stored one while an update is being committed.
    var evaluatedVersion: Int64
    var index: ItemIndex
    private(set) var watches: [SubscriptionSerial: Watch] = [:]
    private var rests: [SubscriptionSerial: Rest] = [:]
    private var queue: [Work] = []
    /// Updates and deletions.
    private var queuedChanges = 0
    private var queuedBytes = 0
    var isDraining = false
    /// An update is being evaluated: what is armed and disarmed meanwhile waits.
    private var isEvaluating = false
    private var deferred: [(WatchedItem) -> Void] = []
    /// The numbers of firings that are not delivered. The item accepts no update until they are.
    var heldUp: Set<Int64> = [] {
        didSet { if heldUp.isEmpty { pending = [] } }
    }
    /// Nothing of it can be relied on any more; whoever wants it loads it anew.
    var isGone = false
    /// When it was last wanted, as the engine counts.
    var lastUse = 0

    /// Those that fired in an earlier process, and were not told when the item was loaded.
    private var pending: Set<SubscriptionSerial>

    init(_ key: ItemKey, _ stored: StoredItem, _ index: ItemIndex, pending: Set<SubscriptionSerial> = []) {
        self.pending = pending
        self.key = key
        self.stored = stored
        evaluatedVersion = stored.version
        self.index = index
    }

    var isIdle: Bool { !isDraining && queue.isEmpty }

    /// Whether work waits in the queue.
    var hasWork: Bool { !queue.isEmpty }

    /// About what it takes in memory, in bytes.
    var weight: Int { 1000 + 4 * stored.state.byteCount + 200 * watches.count + index.constantBytes + queuedBytes }

    // MARK: Work

    func hasRoom(for update: ItemUpdate) -> Bool {
        heldUp.isEmpty && queuedChanges < ItemLimits.waitingUpdates
            && queuedBytes + update.byteCount <= ItemLimits.waitingBytes
    }

    /// Firings that cannot be delivered do not prevent a deletion, which drops them.
    var hasRoomForDeletion: Bool { queuedChanges < ItemLimits.waitingUpdates }

    func enqueue(_ work: Work) {
        switch work {
        case .update(let update, _, _):
            queuedChanges += 1
            queuedBytes += update.byteCount
        case .delete: queuedChanges += 1
        case .look, .giveBack: break
        }
        queue.append(work)
    }

    /// A deletion is the last of its batch: what follows it is for the item that is made anew.
    func takeBatch(_ limit: Int) -> [Work] {
        let end = queue.prefix(limit).firstIndex(where: \.isDeletion).map { $0 + 1 } ?? limit
        let batch = Array(queue.prefix(end))
        queue.removeFirst(batch.count)
        for work in batch {
            switch work {
            case .update(let update, _, _):
                queuedChanges -= 1
                queuedBytes -= update.byteCount
            case .delete: queuedChanges -= 1
            case .look, .giveBack: break
            }
        }
        return batch
    }

    /// Takes all work out that was not begun.
    func takeRest() -> [Work] {
        let rest = queue
        (queue, queuedChanges, queuedBytes) = ([], 0, 0)
        return rest
    }

    /// What an update, or a look, comes to.
    struct Found {
        var errors = 0
        var overCost = 0
        var fired: [ItemIndex.Fired] = []
        /// Those of them that do not rest, with the revisions that they were watched with, as rows of firings.
        var rows: [[Firing.Target]] = []
        /// Until when those rested before that rest from now on.
        fileprivate var rested: [(subscription: SubscriptionSerial, until: Timestamp)] = []
        /// What fired as it was looked at for the first time.
        fileprivate var looked: [ItemIndex.Handle] = []

        fileprivate mutating func add(_ target: Firing.Target) {
            if rows.last?.count ?? Firing.targetsPerRow == Firing.targetsPerRow { rows.append([]) }
            rows[rows.count - 1].append(target)
        }

        /// What is without rows: they are on their way already.
        mutating func add(_ other: Found) {
            // There may be a million of them.
            if fired.isEmpty { fired = other.fired } else { fired += other.fired }
            looked += other.looked
            rested += other.rested
        }
    }

    /// Evaluates an update, a slice after the other; between, others have their turn.
    func evaluate(_ bindings: ExpressionBindings, at now: Timestamp, pause: () async -> Void) async -> Found {
        isEvaluating = true
        var pass = index.begin(bindings)
        while !index.advance(&pass, by: Self.conditionsAtOnce) { await pause() }
        let found = await find(pass.outcome, at: now, pause: pause)
        still()
        return found
    }

    /// Looks at what was armed.
    func look(at subscriptions: [SubscriptionSerial], at now: Timestamp, pause: () async -> Void) async -> Found {
        isEvaluating = true
        let outcome = index.look(at: subscriptions.compactMap { watches[$0]?.handle })
        var found = await find(outcome, at: now, pause: pause)
        found.looked = outcome.fired.map(\.handle)
        still()
        return found
    }

    private func still() {
        isEvaluating = false
        let deferred = deferred
        self.deferred = []
        for work in deferred { work(self) }
    }

    private static let conditionsAtOnce = 16
    private static let targetsAtOnce = 512

    private func find(_ outcome: ItemIndex.Outcome, at now: Timestamp, pause: () async -> Void) async -> Found {
        var found = Found(errors: outcome.errors, overCost: outcome.overCost, fired: outcome.fired)
        for start in stride(from: 0, to: outcome.fired.count, by: Self.targetsAtOnce) {
            for fired in outcome.fired[start..<min(outcome.fired.count, start + Self.targetsAtOnce)] {
                let serial = SubscriptionSerial(fired.subscription)
                guard let watch = watches[serial], watch.handle == fired.handle else { continue }
                if !rests.isEmpty, let rest = rests[serial] {
                    if now < rest.until, now >= rest.until.adding(seconds: -rest.seconds) { continue }
                    found.rested.append((serial, rest.until))
                    rests[serial]?.until = now.adding(seconds: rest.seconds)
                }
                found.add(Firing.Target(subscription: serial, revision: Int64(watch.shortRevision)))
            }
            await pause()
        }
        return found
    }

    /// When no update is being evaluated.
    func whenStill(_ work: @escaping (WatchedItem) -> Void) {
        if isEvaluating { deferred.append(work) } else { work(self) }
    }

    // MARK: Watches

    /// - Parameter isNew: Whether it was armed just now, and not before the last update.
    func arm(_ armed: ArmedSubscription, isNew: Bool, shape: Int?, constants: [ExpressionValue]) {
        let target = armed.target
        let hasFired = armed.hasFired || pending.contains(target.subscription)
        let isUpdated = armed.since < evaluatedVersion
        let wasWatched =
            switch armed.policy {
            case .once, .every: !isNew && (hasFired || isUpdated)
            // A condition that did not hold, holds now and never fired has crossed. The firing was lost or refused.
            case .everyCrossing: evaluatedVersion > 0 && !(armed.held == false && isUpdated && !hasFired)
            }
        let handle = index.add(
            target.subscription.rawValue, armed.policy, shape: shape, constants: constants, wasWatched: wasWatched,
            owner: armed.owner)
        // After that, as a shape goes with its last condition.
        disarm(target.subscription)
        watches[target.subscription] = Watch(
            handle: handle, shortRevision: UInt32(truncatingIfNeeded: target.revision))
        rest(armed)
    }

    /// It may have fired on another item.
    func rest(_ armed: ArmedSubscription) {
        guard armed.coolDownSeconds > 0 else { return }
        rests[armed.target.subscription] = Rest(
            seconds: armed.coolDownSeconds,
            until: armed.firedAt.map { $0.adding(seconds: armed.coolDownSeconds) } ?? Timestamp(milliseconds: .min))
    }

    /// Whether it was not looked at, and holds: an earlier process was killed before it did.
    func isUnseen(_ subscription: SubscriptionSerial) -> Bool {
        guard let watch = watches[subscription], !pending.contains(subscription) else { return false }
        return index.holdsUnseen(watch.handle)
    }

    func disarm(_ subscription: SubscriptionSerial) {
        guard let watch = watches.removeValue(forKey: subscription) else { return }
        rests[subscription] = nil
        index.remove(watch.handle)
    }

    /// It was not told that it fired: nothing holds it back.
    func wakeUp(_ subscription: SubscriptionSerial) { rests[subscription]?.until = Timestamp(milliseconds: .min) }

    /// Whether a target is still watched with the revision of its firing, and fires with crossings.
    func isCrossing(_ target: Firing.Target) -> Bool { crossing(target) != nil }

    private func crossing(_ target: Firing.Target) -> ItemIndex.Handle? {
        guard let watch = watches[target.subscription], watch.isOf(target.revision),
            index.policy(of: watch.handle) == .everyCrossing
        else { return nil }
        return watch.handle
    }

    /// Makes a subscription whose firing was refused fire with the next update, if its condition holds then. A subscription that was
    /// armed again since the firing is left out. No update may be under way.
    func giveBack(_ target: Firing.Target) {
        if let handle = crossing(target) { index.takeBack(handle) }
    }

    /// What fired is on disk: what fires once is watched no more.
    func fired(_ targets: [Firing.Target], pause: () async -> Void) async {
        for start in stride(from: 0, to: targets.count, by: Self.targetsAtOnce) {
            for target in targets[start..<min(targets.count, start + Self.targetsAtOnce)] {
                guard let watch = watches[target.subscription], watch.isOf(target.revision),
                    index.policy(of: watch.handle) == .once
                else { continue }
                disarm(target.subscription)
            }
            await pause()
        }
    }

    /// Nothing of the updates since the last commit counts: the index stands where it stood before them.
    ///
    /// - Parameter unseen: What was not looked at before them.
    func takeBack(
        _ found: Found, unseen: ItemIndex.Unseen, to bindings: ExpressionBindings?, pause: () async -> Void
    ) async {
        for rested in found.rested { rests[rested.subscription]?.until = rested.until }
        isEvaluating = true
        var again = found.fired
        if let bindings {
            var pass = index.begin(bindings)
            while !index.advance(&pass, by: Self.conditionsAtOnce) { await pause() }
            again += pass.outcome.fired
        }
        let unseen = index.handles(of: unseen).union(found.looked)
        for fired in again where watches[SubscriptionSerial(fired.subscription)]?.handle == fired.handle {
            // A crossing that had fired before has done so still.
            guard index.policy(of: fired.handle) != .everyCrossing || unseen.contains(fired.handle) else { continue }
            index.takeBack(fired.handle)
        }
        still()
    }
}
