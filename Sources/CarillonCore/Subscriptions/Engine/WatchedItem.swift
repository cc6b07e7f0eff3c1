import CarillonExpression

/// One item in memory: its values, its armed subscriptions, and its queue of work.
final class WatchedItem {
    /// An armed subscription. The type is small because there may be a million of them.
    struct Watch {
        var handle: ItemIndex.Handle
        fileprivate var shortRevision: UInt32

        func isOf(_ revision: Int64) -> Bool { shortRevision == UInt32(truncatingIfNeeded: revision) }
    }

    /// The cool-down of a subscription, which the store also contains.
    private struct Rest {
        var seconds: Int64
        var until: Timestamp
    }

    typealias Answer = @Sendable (Result<ItemReceipt, any Error>) -> Void
    /// Receives whether the item was deleted.
    typealias DeletionAnswer = @Sendable (Result<Bool, any Error>) -> Void

    enum Work {
        case update(ItemUpdate, ItemState.Mode, Answer)
        /// These subscriptions were armed. They may fire with the present values of the item.
        case look([SubscriptionSerial])
        /// The crossings of these targets were refused between two batches of updates. They can fire with the next update.
        case rearm(Set<Firing.Target>)
        /// The item must be deleted; with a moment only if its last update is not later and the item has no subscription.
        case delete(ifIdleSince: Timestamp?, DeletionAnswer)

        fileprivate var isDeletion: Bool { if case .delete = self { true } else { false } }
    }

    let key: ItemKey
    /// The item in its stored state.
    var stored: StoredItem
    /// The version that the index evaluated last. The version is above the stored version while an update is being committed.
    var evaluatedVersion: Int64
    var index: ItemIndex
    private(set) var watches: [SubscriptionSerial: Watch] = [:]
    private var rests: [SubscriptionSerial: Rest] = [:]
    private var queue: [Work] = []
    /// The number of waiting updates and deletions.
    private var queuedChanges = 0
    private var queuedBytes = 0
    var isDraining = false
    /// Whether conditions are being evaluated. Subscriptions are armed and disarmed after the evaluation.
    private var isEvaluating = false
    private var deferred: [(WatchedItem) -> Void] = []
    /// The numbers of firings that are not delivered. The item accepts no update while there are any.
    var blockingFirings: Set<Int64> = [] {
        didSet { if blockingFirings.isEmpty { pending = [] } }
    }
    /// Whether the item was removed from memory and must be loaded again.
    var isGone = false
    /// The value of the engine's counter of uses when the item was last used.
    var lastUse = 0

    /// Subscriptions with firings of an earlier process that were not delivered when the item was loaded.
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

    /// The approximate memory of the item, in bytes.
    var weight: Int { 1000 + 4 * stored.state.byteCount + 200 * watches.count + index.constantBytes + queuedBytes }

    // MARK: Work

    func hasRoom(for update: ItemUpdate) -> Bool {
        blockingFirings.isEmpty && queuedChanges < ItemLimits.waitingUpdates
            && queuedBytes + update.byteCount <= ItemLimits.waitingBytes
    }

    /// A deletion is accepted also while firings cannot be delivered, because it drops them.
    var hasRoomForDeletion: Bool { queuedChanges < ItemLimits.waitingUpdates }

    func enqueue(_ work: Work) {
        switch work {
        case .update(let update, _, _):
            queuedChanges += 1
            queuedBytes += update.byteCount
        case .delete: queuedChanges += 1
        case .look, .rearm: break
        }
        queue.append(work)
    }

    /// Returns the next work. A deletion is the last of its batch, because later work belongs to the item that is created next.
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
            case .look, .rearm: break
            }
        }
        return batch
    }

    /// Removes and returns all work that has not begun.
    func takeRest() -> [Work] {
        let rest = queue
        (queue, queuedChanges, queuedBytes) = ([], 0, 0)
        return rest
    }

    /// The result of evaluating an update or newly armed subscriptions.
    struct Found {
        var errors = 0
        var overCost = 0
        var fired: [ItemIndex.Fired] = []
        /// The fired subscriptions that are not in their cool-down, with the revisions of their watches, as rows of firings.
        var rows: [[Firing.Target]] = []
        /// The earlier ends of the cool-downs that this evaluation changed.
        fileprivate var rested: [(subscription: SubscriptionSerial, until: Timestamp)] = []
        /// The subscriptions that fired when they were evaluated after arming.
        fileprivate var looked: [ItemIndex.Handle] = []

        fileprivate mutating func add(_ target: Firing.Target) {
            if rows.last?.count ?? Firing.targetsPerRow == Firing.targetsPerRow { rows.append([]) }
            rows[rows.count - 1].append(target)
        }

        /// Adds a result without its rows, because its firings are staged already.
        mutating func add(_ other: Found) {
            // The result may contain a million elements.
            if fired.isEmpty { fired = other.fired } else { fired += other.fired }
            looked += other.looked
            rested += other.rested
        }
    }

    /// Evaluates an update in slices, with a pause after each.
    func evaluate(_ bindings: ExpressionBindings, at now: Timestamp, pause: () async -> Void) async -> Found {
        isEvaluating = true
        var pass = index.begin(bindings)
        while !index.advance(&pass, by: Self.conditionsAtOnce) { await pause() }
        let found = await find(pass.outcome, at: now, pause: pause)
        still()
        return found
    }

    /// Evaluates newly armed subscriptions with the present values.
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

    /// Runs the closure at once, or after the present evaluation.
    func whenStill(_ work: @escaping (WatchedItem) -> Void) {
        if isEvaluating { deferred.append(work) } else { work(self) }
    }

    // MARK: Watches

    /// - Parameter isNew: Whether the subscription was armed just now, and not before the last update.
    func arm(_ armed: ArmedSubscription, isNew: Bool, shape: Int?, constants: [ExpressionValue]) {
        let target = armed.target
        let hasFired = armed.hasFired || pending.contains(target.subscription)
        let isUpdated = armed.since < evaluatedVersion
        let wasWatched =
            switch armed.policy {
            case .once, .every: !isNew && (hasFired || isUpdated)
            // The condition did not hold before, holds now and never fired, so it has crossed. The firing was lost or refused.
            case .everyCrossing: evaluatedVersion > 0 && !(armed.held == false && isUpdated && !hasFired)
            }
        let handle = index.add(
            target.subscription.rawValue, armed.policy, shape: shape, constants: constants, wasWatched: wasWatched,
            owner: armed.owner)
        // The former watch is removed afterwards, because a shape is removed with its last condition.
        disarm(target.subscription)
        watches[target.subscription] = Watch(
            handle: handle, shortRevision: UInt32(truncatingIfNeeded: target.revision))
        rest(armed)
    }

    /// Sets the cool-down from the row, because the subscription may have fired on another item.
    func rest(_ armed: ArmedSubscription) {
        guard armed.coolDownSeconds > 0 else { return }
        rests[armed.target.subscription] = Rest(
            seconds: armed.coolDownSeconds,
            until: armed.firedAt.map { $0.adding(seconds: armed.coolDownSeconds) } ?? Timestamp(milliseconds: .min))
    }

    /// Whether the condition holds and was never evaluated since it was armed, because an earlier process was killed before.
    func isUnseen(_ subscription: SubscriptionSerial) -> Bool {
        guard let watch = watches[subscription], !pending.contains(subscription) else { return false }
        return index.holdsUnseen(watch.handle)
    }

    func disarm(_ subscription: SubscriptionSerial) {
        guard let watch = watches.removeValue(forKey: subscription) else { return }
        rests[subscription] = nil
        index.remove(watch.handle)
    }

    /// Ends the cool-down of a subscription whose firing was not delivered.
    func wakeUp(_ subscription: SubscriptionSerial) { rests[subscription]?.until = Timestamp(milliseconds: .min) }

    /// Whether a target is still watched with the revision of its firing, and has the policy `everyCrossing`.
    func isCrossing(_ target: Firing.Target) -> Bool { crossing(target) != nil }

    private func crossing(_ target: Firing.Target) -> ItemIndex.Handle? {
        guard let watch = watches[target.subscription], watch.isOf(target.revision),
            index.policy(of: watch.handle) == .everyCrossing
        else { return nil }
        return watch.handle
    }

    /// Makes a subscription whose firing was refused fire with the next update, if its condition holds then. A subscription that
    /// was armed again since the firing is left out. No update may be in progress.
    func rearm(_ target: Firing.Target) {
        if let handle = crossing(target) { index.takeBack(handle) }
    }

    /// Disarms subscriptions with the policy `once` after their firing was stored.
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

    /// Undoes the evaluation of updates that could not be committed: the index returns to the state before them.
    ///
    /// - Parameter unseen: The subscriptions that were not evaluated before the updates.
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
            // A crossing that had fired before the updates must not fire again.
            guard index.policy(of: fired.handle) != .everyCrossing || unseen.contains(fired.handle) else { continue }
            index.takeBack(fired.handle)
        }
        still()
    }
}
