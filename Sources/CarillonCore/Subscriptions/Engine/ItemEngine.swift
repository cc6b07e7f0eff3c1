import CarillonWire
package import Logging
import Metrics

/// Evaluates updates of items against the conditions of subscriptions, stores the updates with their firings, and delivers the
/// firings.
///
/// An item is loaded when it is first used, with its values and its armed subscriptions. One task at a time processes the updates
/// of an item, in their order. It evaluates a batch, writes the updates with their firings in one transaction, answers the
/// publishers, and delivers the firings before the next batch. An item with many subscribers therefore delays only itself, and
/// its publishers when its queue is full. Items take turns on the engine.
package actor ItemEngine {
    package struct Limits: Sendable {
        /// The number of items in memory. Beyond this limit the least recently used items are removed from memory; they stay in
        /// the store.
        package var items = 20_000
        /// The approximate memory of all items, in bytes.
        package var bytes = 512 << 20
        /// The bytes of updates that wait to be evaluated, in all items and in the items of one app.
        package var waitingBytes = 64 << 20
        package var waitingBytesOfApp = 16 << 20
        /// The number of targets that one batch of updates can fire before it is written and delivered.
        package var targetsAtOnce = 16_384
        /// The number of subscriptions that are read at a time while an item is loaded.
        package var armedAtOnce = 4096
        /// Conditions of one item that begin with no comparison of a field and a constant.
        package var unguardedPerItem = SubscriptionLimits.unguardedPerItem
        package var constantBytesPerItem = SubscriptionLimits.constantBytesPerItem
        package var comparedPerItem = SubscriptionLimits.comparedPerItem
        /// The part of each of the three limits that one owner can use.
        package var quotaPercent = SubscriptionLimits.quotaPercent
        package init() {}
    }

    let store: any SubscriptionStore & HandOverStore
    /// The home of the items.
    let home: any LocalHome
    /// Whether the server has no other home, so that each item always belongs to this home.
    nonisolated let hasAllShards: Bool
    let documents: AppDocuments
    let firings: Firings
    package nonisolated let conditions: ItemConditions
    let time: TimeSource
    private let ticks: TickSource
    let logger: Logger
    let limits: Limits
    let shapes: ConditionShapes

    var items: [ItemKey: WatchedItem] = [:]
    var loading: [ItemKey: Task<Void, any Error>] = [:]
    var uses = 0
    private var waitingBytes = 0
    private var waitingBytesOfApps: [AppSerial: Int] = [:]
    var loads = 0
    /// The numbers of firings that are being delivered.
    var underWay: Set<Int64> = []
    /// Firings that were delivered while an item was being loaded. The load may have read them as not delivered.
    var notifiedMeanwhile: Set<Int64> = []
    /// Targets whose firing was refused between batches of their item's updates. They can fire again when no firing delays the
    /// updates.
    var refusedOfRest: [ItemKey: Set<Firing.Target>] = [:]
    /// Subscriptions whose rows changed and were not read since. The value is whether they may fire at once.
    var changed: [SubscriptionSerial: Bool] = [:]
    /// Subscriptions whose rows are being read.
    var following: Set<SubscriptionSerial> = []
    var followers: [CheckedContinuation<Void, Never>] = []
    /// Whether a call applies hand-overs, and the calls that wait for it.
    var isApplyingHandOvers = false
    var waitingForHandOvers: [CheckedContinuation<Void, Never>] = []
    /// The number of hand-overs that the last call could not apply.
    var failedHandOvers = 0
    /// The number of changed subscriptions that could not be read in the last attempt.
    var failedSubscriptions = 0
    /// Work that waits until a deleted item is loaded again.
    var carriedOver: [ItemKey: [WatchedItem.Work]] = [:]
    /// The number of calls for each item that deliver its stored firings.
    var restTellers: [ItemKey: Int] = [:]
    /// The shards of the hand-overs that are being applied.
    var handOverShards: Set<Shard> = []
    /// Shards that the home took and whose subscriptions were not evaluated since.
    var taken = ShardSet.none

    private let accepted = ServerMetric.itemUpdates.counter("accepted")
    private let repeated = ServerMetric.itemUpdates.counter("repeated")
    private let refused = ServerMetric.itemUpdates.counter("refused")
    private let errors = ServerMetric.conditionErrors.counter()
    let overCost = ServerMetric.conditionsOverCost.counter()

    /// - Parameter hasAllShards: False if the server has several homes, also while this home has all shards.
    package init(
        store: any SubscriptionStore & HandOverStore, home: any LocalHome, hasAllShards: Bool = true,
        documents: AppDocuments, firings: Firings, conditions: ItemConditions, time: TimeSource, ticks: TickSource,
        logger: Logger, limits: Limits = .init()
    ) {
        self.store = store
        self.home = home
        self.hasAllShards = hasAllShards
        self.documents = documents
        self.firings = firings
        self.conditions = conditions
        self.time = time
        self.ticks = ticks
        self.logger = logger
        self.limits = limits
        shapes = ConditionShapes(conditions.environment)
    }

    /// Whether the item is in a shard of this home. Items of other homes are only read from the store.
    nonisolated func has(_ key: ItemKey) -> Bool { home.has(key.shard) }

    /// The time after which a batch lets other items run. An update of another item waits for about four slices.
    private static let sliceNanoseconds: Int64 = 150_000
    private static let updatesAtOnce = 256
    static let followedAtOnce = 256
    /// The number of items whose firings of an earlier process, or from before a full disk, are delivered at a time.
    static let restAtOnce = 4

    // MARK: Updates

    /// Accepts an update. When this returns, the item and the firings of the update are stored durably.
    package func publish(_ update: ItemUpdate, to key: ItemKey, mode: ItemState.Mode) async throws -> ItemReceipt {
        let item = try await item(key)
        return try await withCheckedThrowingContinuation { continuation in
            take(update, mode, on: item) { continuation.resume(with: $0) }
        }
    }

    private func take(
        _ update: ItemUpdate, _ mode: ItemState.Mode, on item: WatchedItem, answer: @escaping WatchedItem.Answer
    ) {
        let (bytes, app) = (update.byteCount, item.key.app)
        guard item.hasRoom(for: update), waitingBytes + bytes <= limits.waitingBytes,
            waitingBytesOfApps[app, default: 0] + bytes <= limits.waitingBytesOfApp
        else {
            refused.increment()
            return answer(.failure(Self.busy))
        }
        waitingBytes += bytes
        waitingBytesOfApps[app, default: 0] += bytes
        item.enqueue(.update(update, mode, answer))
        drain(item)
    }

    func leave(_ update: ItemUpdate, of app: AppSerial) {
        waitingBytes -= update.byteCount
        let left = waitingBytesOfApps[app, default: 0] - update.byteCount
        waitingBytesOfApps[app] = left > 0 ? left : nil
    }

    /// Accepts updates in their order. Each update has its own result.
    package func publish(_ updates: [PublishedUpdate]) async -> [Result<ItemReceipt, any Error>] {
        let answers = ResultCollector<Result<ItemReceipt, any Error>>(updates.count)
        for (place, published) in updates.enumerated() {
            do {
                let item = try await item(published.key)
                take(published.update, published.mode, on: item) { answers.note(place, $0) }
            } catch {
                answers.note(place, .failure(error))
            }
        }
        return await answers.all()
    }

    static let busy = Refusal(
        .itemBusy, "The item has reached its limit of waiting updates; retry later.", retryAfterSeconds: 1)

    /// Returns an item with its values; nil before its first update.
    package func item(of key: ItemKey) async throws -> StoredItem? {
        if let item = items[key] { return item.stored.version > 0 ? item.stored : nil }
        return try await store.item(key)
    }

    func drain(_ item: WatchedItem) {
        guard !item.isDraining else { return }
        item.isDraining = true
        // The task ends when the item has no more work.
        Task { await drainUntilDone(item) }
    }

    private func drainUntilDone(_ item: WatchedItem) async {
        while item.hasWork {
            await updateCostLimit(of: item)
            let batch = item.takeBatch(Self.updatesAtOnce)
            for case .update(let update, _, _) in batch { leave(update, of: item.key.app) }
            await perform(batch, on: item)
        }
        item.isDraining = false
    }

    // MARK: A batch

    /// The results of a batch until they are written.
    private struct Staged {
        typealias Answered = (answer: WatchedItem.Answer, result: Result<ItemReceipt, any Error>)

        var item: StoredItem
        var unseen: ItemIndex.Unseen
        var found = WatchedItem.Found()
        var firings: [Firing] = []
        var targets = 0
        var answers: [Answered] = []
        var isChanged = false

        init(_ item: WatchedItem) {
            self.item = item.stored
            unseen = item.index.unseen
        }
    }

    private func perform(_ batch: [WatchedItem.Work], on item: WatchedItem) async {
        var staged = Staged(item)
        var began = ticks.now()
        func pause() async {
            guard ticks.now() - began > Self.sliceNanoseconds else { return }
            // Other items can run.
            await Task.yield()
            began = ticks.now()
        }
        for work in batch {
            switch work {
            case .update, .look:
                await evaluate(work, on: item, &staged, pause: pause)
                if staged.targets >= limits.targetsAtOnce { await write(&staged, of: item, pause: pause) }
            case .rearm(let refused):
                await write(&staged, of: item, pause: pause)
                await rearm(refused, to: item)
                staged = Staged(item)
            case .delete(let moment, let answer):
                await write(&staged, of: item, pause: pause)
                await delete(item, ifIdleSince: moment, answer: answer)
            }
        }
        await write(&staged, of: item, pause: pause)
    }

    /// - Parameter pause: Lets other tasks run when a slice has ended.
    private func evaluate(
        _ work: WatchedItem.Work, on item: WatchedItem, _ staged: inout Staged, pause: () async -> Void
    ) async {
        let found: WatchedItem.Found
        switch work {
        // These are performed after the staged results are written.
        case .rearm, .delete: return
        case .look(let subscriptions):
            // The first update was not written. Its subscriptions fire with the next update.
            guard staged.item.version > 0 else { return }
            found = await item.look(at: subscriptions, at: time.now(), pause: pause)
        case .update(let update, let mode, let answer):
            guard !item.isGone else { return staged.answers.append((answer, .failure(Self.busy))) }
            if let place = update.place, staged.item.has(place) {
                repeated.increment()
                staged.answers.append((answer, .success(ItemReceipt(version: staged.item.version, isRepeated: true))))
                return
            }
            var next = staged.item
            if next.state.mode != mode { next.state = next.state.inMode(mode) }
            next.state.apply(.init(update.fields, at: time.now()))
            guard next.state.fields.count <= ItemLimits.fields, next.state.byteCount <= ItemLimits.itemBytes else {
                refused.increment()
                let refusal = Refusal(
                    .itemTooLarge,
                    "An item can have up to \(ItemLimits.fields) fields, with at most \(ItemLimits.itemBytes) bytes in all names and values."
                )
                staged.answers.append((answer, .failure(refusal)))
                return
            }
            next.version += 1
            if let place = update.place { next.note(place) }
            staged.item = next
            staged.isChanged = true
            staged.answers.append((answer, .success(ItemReceipt(version: next.version))))
            guard let bindings = conditions.bindings(item.key.name.text, next.state) else { return }
            item.evaluatedVersion = next.version
            found = await item.evaluate(bindings, at: time.now(), pause: pause)
        }
        errors.increment(by: found.errors)
        overCost.increment(by: found.overCost)
        staged.found.add(found)
        for row in found.rows {
            staged.targets += row.count
            staged.firings.append(
                Firing(item: item.key.name, app: item.key.app, state: staged.item.state, targets: row))
        }
    }

    /// Writes the staged results. Afterwards nothing is staged.
    private func write(_ staged: inout Staged, of item: WatchedItem, pause: () async -> Void) async {
        do {
            let numbers = try await commit(staged, of: item)
            let (firings, answers) = (staged.firings, staged.answers)
            item.stored = staged.item
            staged = Staged(item)
            await finish(zip(numbers, firings).reversed(), answers, of: item, pause: pause)
            // If the next write fails, the refused crossings must still fire with a later update.
            staged.unseen = item.index.unseen
        } catch {
            item.evaluatedVersion = item.stored.version
            await item.takeBack(
                staged.found, unseen: staged.unseen, to: conditions.bindings(item.key.name.text, item.stored.state),
                pause: pause)
            for (answer, result) in staged.answers {
                if case .success = result { answer(.failure(error)) } else { answer(result) }
            }
            staged = Staged(item)
        }
    }

    /// Returns the numbers of the firings.
    private func commit(_ staged: Staged, of item: WatchedItem) async throws -> [Int64] {
        guard staged.isChanged || !staged.firings.isEmpty else { return [] }
        let commit = ItemCommit(key: item.key, item: staged.item, firings: staged.firings)
        guard let written = try await store.commitItem(commit) else {
            forget(item)
            throw Refusal(.itemsTooMany, "The app has reached its limit of items, or was deleted.")
        }
        return written
    }

    /// Answers the publishers and delivers the firings after a batch was written.
    ///
    /// - Parameter firings: In reverse order, so that each can be removed from memory after its delivery.
    private func finish(
        _ firings: consuming [(number: Int64, firing: Firing)], _ answers: [Staged.Answered], of item: WatchedItem,
        pause: () async -> Void
    ) async {
        var waiting = firings
        underWay.formUnion(waiting.lazy.map(\.number))
        for (_, firing) in waiting { await item.fired(firing.targets, pause: pause) }
        for (answer, result) in answers {
            if case .success(let receipt) = result, !receipt.isRepeated { accepted.increment() }
            answer(result)
        }
        var refused: [SubscriptionSerial: Firing.Target] = [:]
        while let (number, firing) = waiting.popLast() {
            // If a refused subscription fires again, the later firing decides.
            if !refused.isEmpty { for target in firing.targets { refused[target.subscription] = nil } }
            // Firings are delivered in their order: after a later firing, an earlier firing of the same subscription is ignored.
            if item.blockingFirings.isEmpty {
                for target in await deliver(StoredFiring(number: number, firing: firing)).pending {
                    refused[target.subscription] = target
                }
            } else {
                underWay.remove(number)
                item.blockingFirings.insert(number)
            }
        }
        for target in refused.values { item.rearm(target) }
    }

    // MARK: State

    /// Whether no work is in progress.
    package var isIdle: Bool { underWay.isEmpty && carriedOver.isEmpty && items.values.allSatisfy(\.isIdle) }

    package struct Population: Equatable, Sendable {
        package var items: Int
        package var watches: Int
        /// The number of different shapes of conditions.
        package var shapes: Int
    }

    package var population: Population {
        Population(
            items: items.count, watches: items.values.reduce(0) { $0 + $1.watches.count },
            shapes: shapes.entries.count { $0 != nil })
    }
}

package struct PublishedUpdate: Sendable {
    package var key: ItemKey
    package var update: ItemUpdate
    package var mode: ItemState.Mode

    package init(_ update: ItemUpdate, to key: ItemKey, mode: ItemState.Mode) {
        self.update = update
        self.key = key
        self.mode = mode
    }
}
