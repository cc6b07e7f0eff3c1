package import CarillonExpression
import CarillonWire
package import Logging
import Metrics

/// Takes updates of items, finds what they fire, and has it told: the home of all items that are wanted.
///
/// An item is loaded when it is first wanted: what stands in it, and the subscriptions that are armed on it. Its updates are taken
/// one after the other, by a task that exists while there are some: they are evaluated, written with what they fired in one
/// transaction, and answered; then what fired is told, before the next are looked at. So an item with many subscribers delays
/// itself, and its publishers when its queue is full; the items take turns on the engine.
package actor ItemEngine {
    package struct Limits: Sendable {
        /// Items in memory. Beyond it those go that were not wanted for the longest time; the disk has them.
        package var items = 20_000
        /// About what they may take, in bytes.
        package var bytes = 512 << 20
        /// Of updates that wait to be evaluated, in all items.
        package var waitingBytes = 64 << 20
        package init() {}
    }

    private let store: any SubscriptionStore
    private let firings: Firings
    package nonisolated let conditions: ItemConditions
    private let time: TimeSource
    private let ticks: TickSource
    private let logger: Logger
    private let limits: Limits
    private let shapes: ConditionShapes

    private var items: [ItemKey: WatchedItem] = [:]
    private var loading: [ItemKey: Task<Void, any Error>] = [:]
    private var uses = 0
    private var waitingBytes = 0
    private var loads = 0
    /// Firings that are being told.
    private var underWay: Set<Int64> = []
    /// Subscriptions whose rows changed, and that the engine has not looked at since,
    /// with whether they may fire at once.
    private var changed: [SubscriptionSerial: Bool] = [:]
    private var lookers: [CheckedContinuation<Void, Never>] = []
    private var isFollowing = false

    private let accepted = ServerMetric.itemUpdates.counter("accepted")
    private let repeated = ServerMetric.itemUpdates.counter("repeated")
    private let refused = ServerMetric.itemUpdates.counter("refused")
    private let errors = ServerMetric.conditionErrors.counter()

    package init(
        store: any SubscriptionStore, firings: Firings, conditions: ItemConditions, time: TimeSource, ticks: TickSource,
        logger: Logger, limits: Limits = .init()
    ) {
        self.store = store
        self.firings = firings
        self.conditions = conditions
        self.time = time
        self.ticks = ticks
        self.logger = logger
        self.limits = limits
        shapes = ConditionShapes(conditions.environment)
    }

    private static let sliceNanoseconds: Int64 = 1_000_000
    private static let updatesAtOnce = 256
    private static let conditionsAtOnce = 64
    private static let armedAtOnce = 4096

    // MARK: Updates

    /// Takes an update. When this returns, what stands in the item is on disk, and what it fired, or that from which it will be
    /// told.
    package func publish(_ update: ItemUpdate, to key: ItemKey, mode: ItemState.Mode) async throws -> ItemReceipt {
        let item = try await item(key)
        return try await withCheckedThrowingContinuation { continuation in
            take(update, mode, on: item) { continuation.resume(with: $0) }
        }
    }

    private func take(
        _ update: ItemUpdate, _ mode: ItemState.Mode, on item: WatchedItem, answer: @escaping WatchedItem.Answer
    ) {
        guard item.hasRoom(for: update), waitingBytes + update.byteCount <= limits.waitingBytes else {
            refused.increment()
            return answer(.failure(Self.busy))
        }
        waitingBytes += update.byteCount
        item.enqueue(.update(update, mode, answer))
        drain(item)
    }

    /// The same of many, in their order; each has its own answer.
    package func publish(_ updates: [PublishedUpdate]) async -> [Result<ItemReceipt, any Error>] {
        let answers = Answers<Result<ItemReceipt, any Error>>(updates.count)
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

    private static let busy = Refusal(
        .itemBusy, "The item has as many updates waiting as it may.", retryAfterSeconds: 1)

    /// What stands in an item; nil before its first update.
    package func item(of key: ItemKey) async throws -> StoredItem? {
        if let item = items[key] { return item.stored.version > 0 ? item.stored : nil }
        return try await store.item(key)
    }

    private func drain(_ item: WatchedItem) {
        guard !item.isDraining else { return }
        item.isDraining = true
        // Ends when the item has nothing left to do.
        Task { await drainUntilDone(item) }
    }

    private func drainUntilDone(_ item: WatchedItem) async {
        while true {
            let batch = item.takeBatch(Self.updatesAtOnce)
            if batch.isEmpty { break }
            await perform(batch, on: item)
        }
        item.isDraining = false
    }

    private struct Staged {
        var item: StoredItem
        var firings: [Firing] = []
        var fired: [ItemIndex.Fired] = []
        var answers: [(answer: WatchedItem.Answer, result: Result<ItemReceipt, any Error>)] = []
        var isChanged = false
    }

    private func perform(_ batch: [WatchedItem.Work], on item: WatchedItem) async {
        var staged = Staged(item: item.stored)
        var began = ticks.now()
        for work in batch {
            if case .update(let update, _, _) = work { waitingBytes -= update.byteCount }
            await evaluate(work, on: item, &staged) {
                guard ticks.now() - began > Self.sliceNanoseconds else { return }
                // The engine has other items.
                await Task.yield()
                began = ticks.now()
            }
        }
        do {
            try await commit(staged, of: item)
        } catch {
            item.takeBack(staged.fired, to: conditions.bindings(item.key.name.text, item.stored.state))
            for (answer, result) in staged.answers {
                if case .success = result { answer(.failure(error)) } else { answer(result) }
            }
        }
    }

    /// - Parameter pause: Lets others have their turn, when it is time.
    private func evaluate(
        _ work: WatchedItem.Work, on item: WatchedItem, _ staged: inout Staged, pause: () async -> Void
    ) async {
        let outcome: ItemIndex.Outcome
        switch work {
        case .look: outcome = item.index.look()
        case .update(let update, let mode, let answer):
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
                    "An item may have \(ItemLimits.fields) fields, and \(ItemLimits.itemBytes) bytes in them and their names."
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
            outcome = await item.evaluate(bindings, atOnce: Self.conditionsAtOnce, pause: pause)
        }
        await pause()
        errors.increment(by: outcome.errors)
        let targets = item.targets(of: outcome.fired, at: time.now())
        guard !targets.isEmpty else { return }
        staged.fired += outcome.fired
        for start in stride(from: 0, to: targets.count, by: Firing.targetsPerRow) {
            staged.firings.append(
                Firing(
                    item: item.key.name, app: item.key.app, state: staged.item.state,
                    targets: Array(targets[start..<min(targets.count, start + Firing.targetsPerRow)])))
        }
    }

    private func commit(_ staged: Staged, of item: WatchedItem) async throws {
        var numbers: [Int64] = []
        if staged.isChanged || !staged.firings.isEmpty {
            let commit = ItemCommit(key: item.key, item: staged.item, firings: staged.firings)
            guard let written = try await store.commitItem(commit) else {
                forget(item)
                throw Refusal(.itemsTooMany, "The app has as many items as it may, or was deleted.")
            }
            numbers = written
        }
        item.stored = staged.item
        underWay.formUnion(numbers)
        for firing in staged.firings { item.fired(firing.targets, at: time.now()) }
        for (answer, result) in staged.answers {
            if case .success(let receipt) = result, !receipt.isRepeated { accepted.increment() }
            answer(result)
        }
        for (number, firing) in zip(numbers, staged.firings) { await tell(StoredFiring(number: number, firing: firing)) }
    }

    // MARK: Firings

    /// What cannot be told now stays on disk, until ``tellRest()``.
    private func tell(_ firing: StoredFiring) async {
        defer { underWay.remove(firing.number) }
        let key = ItemKey(app: firing.firing.app, name: firing.firing.item)
        let unsettled: Set<SubscriptionSerial>
        do {
            unsettled = try await firings.tell(firing)
        } catch {
            items[key]?.heldUp.insert(firing.number)
            logger.error("a firing could not be told, and is tried again", metadata: ["reason": "\(error)"])
            return
        }
        items[key]?.heldUp.remove(firing.number)
        for subscription in unsettled { items[key]?.wakeUp(subscription) }
        do {
            try await follow(unsettled, looks: false)
        } catch {
            logger.error("subscriptions could not be read, and are looked at later", metadata: ["reason": "\(error)"])
        }
    }

    /// Tells what was left, as by a server that was killed or a disk that was full.
    package func tellRest() async throws {
        var last: Int64 = 0
        while !Task.isCancelled {
            let some = try await store.firings(after: last, limit: 16)
            guard let end = some.last?.number else { return }
            last = end
            for firing in some where underWay.insert(firing.number).inserted { await tell(firing) }
        }
    }

    // MARK: Items

    private func item(_ key: ItemKey) async throws -> WatchedItem {
        uses += 1
        while true {
            if let item = items[key] {
                item.lastUse = uses
                return item
            }
            if let task = loading[key] {
                try await task.value
                continue
            }
            let task = Task { try await load(key) }
            loading[key] = task
            defer { loading[key] = nil }
            try await task.value
        }
    }

    private func load(_ key: ItemKey) async throws {
        let stored = try await store.item(key) ?? StoredItem(state: ItemState(.merge))
        let item = WatchedItem(
            key, stored, ItemIndex(shapes, at: conditions.bindings(key.name.text, stored.state)))
        var last = SubscriptionSerial(0)
        while true {
            let some = try await store.armed(on: key, after: last, limit: Self.armedAtOnce)
            for armed in some { arm(armed, on: item) }
            guard some.count == Self.armedAtOnce, let end = some.last else { break }
            last = end.target.subscription
            await Task.yield()
        }
        item.lastUse = uses
        letIdleGo()
        items[key] = item
    }

    private func letIdleGo() {
        // What each takes changes all the time: it is counted out now and then.
        loads += 1
        let isHeavy = loads % 64 == 0 && items.values.reduce(0) { $0 + $1.weight } > limits.bytes
        guard items.count >= limits.items || isHeavy else { return }
        let idle = items.values.filter { $0.isIdle && $0.heldUp.isEmpty }.sorted { $0.lastUse < $1.lastUse }
        for item in idle.prefix(max(1, idle.count / (isHeavy ? 2 : 10))) { forget(item) }
    }

    private func forget(_ item: WatchedItem) {
        item.isGone = true
        if items[item.key] === item { items[item.key] = nil }
    }

    /// An app was deleted, or says something else of its items.
    package func forget(_ app: AppSerial) {
        for item in items.values where item.key.app == app && item.isIdle { forget(item) }
    }

    private func arm(_ armed: ArmedSubscription, on item: WatchedItem) {
        item.whenStill { item in self.armNow(armed, on: item) }
    }

    private func armNow(_ armed: ArmedSubscription, on item: WatchedItem) {
        var shape: Int?
        var constants: [ExpressionValue] = []
        if let condition = armed.condition {
            do {
                if let known = shapes.known(condition.shape), let values = condition.constants.flatMap(ValueCoding.values) {
                    (shape, constants) = (known, values)
                } else {
                    let program = try ExpressionProgram.unchecked(condition.source, in: conditions.environment)
                    shape = try shapes.number(of: program)
                    constants = condition.constants.flatMap(ValueCoding.values) ?? program.constants
                }
            } catch {
                // An earlier version took it; it fires never.
                logger.error(
                    "a condition cannot be read any more",
                    metadata: ["subscription": "\(armed.target.subscription.rawValue)"])
                return
            }
        }
        item.arm(armed, shape: shape, constants: constants)
    }

    /// Whether an item has as many conditions as it may that no comparison guards.
    package func isFull(_ key: ItemKey, for program: ExpressionProgram) async throws -> Bool {
        guard let shape = try? shapes.number(of: program) else { return false }
        defer { shapes.forget(shape) }
        guard ItemIndex.isUnguarded(shape, in: shapes) else { return false }
        return try await item(key).index.evaluatedCount >= SubscriptionLimits.unguardedPerItem
    }

    // MARK: Subscriptions

    /// Rows of subscriptions changed: returns when the engine knows them as they are.
    ///
    /// - Parameter looks: What is armed by it may fire at once, with what stands in its items.
    package func follow(_ subscriptions: some Collection<SubscriptionSerial> & Sendable, looks: Bool) async throws {
        guard !subscriptions.isEmpty else { return }
        for subscription in subscriptions { changed[subscription, default: false] = looks || changed[subscription] == true }
        // One after the other, so that what is read last is done last.
        while isFollowing { await withCheckedContinuation { lookers.append($0) } }
        var some: [SubscriptionSerial: Bool] = [:]
        for subscription in subscriptions { some[subscription] = changed.removeValue(forKey: subscription) }
        guard !some.isEmpty else { return }
        isFollowing = true
        defer {
            isFollowing = false
            let waiting = lookers
            lookers = []
            for looker in waiting { looker.resume() }
        }
        do {
            try await followNow(some)
        } catch {
            changed.merge(some) { $0 || $1 }
            throw error
        }
    }

    private func followNow(_ subscriptions: [SubscriptionSerial: Bool]) async throws {
        let armed = try await store.armed(Array(subscriptions.keys))
        var wanted: [ItemKey: [ArmedSubscription]] = [:]
        for armed in armed {
            if armed.isArmed {
                wanted[armed.item, default: []].append(armed)
            } else {
                items[armed.item]?.whenStill { $0.disarm(armed.target.subscription) }
            }
        }
        for (key, armed) in wanted {
            let looks = armed.contains { subscriptions[$0.target.subscription] == true }
            // One that is not in memory finds them when it is loaded.
            guard looks || items[key] != nil || loading[key] != nil else { continue }
            let item = try await item(key)
            for armed in armed where item.watches[armed.target.subscription]?.isOf(armed.target.revision) != true {
                arm(armed, on: item)
            }
            guard looks, item.stored.version > 0 else { continue }
            item.enqueue(.look)
            drain(item)
        }
    }

    /// Takes out what is watched no more, as its rows are gone, and looks at what changed and was not looked at.
    package func settle() async throws {
        // What could not be read when it changed.
        try await follow(Array(changed.keys), looks: true)
        while !Task.isCancelled {
            let some = try await store.takeUnwatched(limit: 1000)
            for gone in some { items[gone.item]?.whenStill { $0.disarm(gone.subscription) } }
            if some.count < 1000 { return }
        }
    }

    /// Of a device that was suspended or resumed, or belongs to another user.
    package func follow(_ device: DeviceSerial) async throws {
        try await follow(try await store.serials(of: device), looks: false)
    }

    // MARK: Looking

    /// Whether nothing is under way.
    package var isIdle: Bool { underWay.isEmpty && items.values.allSatisfy(\.isIdle) }

    package struct Population: Equatable, Sendable {
        package var items: Int
        package var watches: Int
    }

    package var population: Population {
        Population(items: items.count, watches: items.values.reduce(0) { $0 + $1.watches.count })
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
