import CarillonExpression
import CarillonWire
import Logging
import Metrics

/// Loads items into memory when they are used, and removes idle items when a limit is reached.
extension ItemEngine {
    func item(_ key: ItemKey) async throws -> WatchedItem {
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
            // An item must have one home, because a home overwrites the row of an item with the item in its memory.
            guard home.isOpen(key.shard) else { throw Self.isElsewhere }
            let task = Task { try await load(key) }
            loading[key] = task
            defer {
                loading[key] = nil
                // If the item could not be loaded, a later load finds its refused crossings.
                if items[key] == nil { refusedOfRest[key] = nil }
                if loading.isEmpty { notifiedMeanwhile = [] }
            }
            try await task.value
        }
    }

    private func load(_ key: ItemKey) async throws {
        // The rows contain the refused crossings before they are read.
        refusedOfRest[key] = nil
        let found = try await store.item(key)
        // A server that was killed after it deleted the item may not have reset all subscriptions.
        if found == nil { try await resetSubscriptions(on: key, all: false) }
        let stored = found ?? StoredItem(state: ItemState(.merge))
        // Firings are read before armed subscriptions. A subscription that is notified in between is in this set, or its row
        // contains the firing.
        let pending = try await store.firingTargets(of: key)
        var index = ItemIndex(shapes, at: conditions.bindings(key.name.text, stored.state))
        index.costLimit = try await conditionCost(of: key.app)
        let item = WatchedItem(key, stored, index, pending: pending)
        var last = SubscriptionSerial(0)
        var unseen: [SubscriptionSerial] = []
        while true {
            let some = try await store.armed(on: key, after: last, limit: limits.armedAtOnce)
            for (place, armed) in some.enumerated() {
                // Other tasks can run.
                if place % Self.armedBetween == Self.armedBetween - 1 { await Task.yield() }
                arm(armed, on: item)
                if item.isUnseen(armed.target.subscription) { unseen.append(armed.target.subscription) }
            }
            guard some.count == limits.armedAtOnce, let end = some.last else { break }
            last = end.target.subscription
            await Task.yield()
        }
        // Stored firings are delivered before the firings of later updates.
        item.blockingFirings = Set(try await store.firingNumbers(of: key)).subtracting(notifiedMeanwhile)
        item.lastUse = uses
        evictIdle()
        items[key] = item
        if !unseen.isEmpty { item.enqueue(.look(unseen)) }
        rearmRefused(of: key)
        for work in carriedOver.removeValue(forKey: key) ?? [] { item.enqueue(work) }
        if !item.isIdle { drain(item) }
    }

    private static let armedBetween = 128

    private func evictIdle() {
        // The memory of an item changes all the time, so the sum is computed only with every 64th load.
        loads += 1
        let weight = loads % 64 == 0 ? items.values.reduce(0) { $0 + $1.weight } : 0
        guard items.count >= limits.items || weight > limits.bytes else { return }
        var excess = weight - limits.bytes
        var count = items.count >= limits.items ? max(1, items.count / 10) : 0
        // An item without subscriptions is removed first, because it is loaded again by reading one row.
        let idle = items.values.filter { $0.isIdle && $0.blockingFirings.isEmpty }
            .sorted { ($0.watches.isEmpty ? 0 : 1, $0.lastUse) < ($1.watches.isEmpty ? 0 : 1, $1.lastUse) }
        for item in idle {
            guard count > 0 || excess > 0 else { return }
            count -= 1
            excess -= item.weight
            forget(item)
        }
    }

    func forget(_ item: WatchedItem) {
        item.isGone = true
        guard items[item.key] === item else { return }
        items[item.key] = nil
        // The rows contain the refused crossings.
        refusedOfRest[item.key] = nil
    }

    /// Removes the items of a deleted app from memory.
    package func forget(_ app: AppSerial) {
        for item in items.values where item.key.app == app && item.isIdle { forget(item) }
    }

    // MARK: Costs

    /// The highest cost of evaluating one condition, and of rendering one notification, in an app.
    func conditionCost(of app: AppSerial) async throws -> Int { try await documents.itemRules(of: app).rules.conditionCost }

    /// Applies the app's present rules to the next evaluation. Batches of work, loading and arming each read the limit once.
    func updateCostLimit(of item: WatchedItem) async {
        do {
            let cost = try await conditionCost(of: item.key.app)
            item.index.costLimit = cost
        } catch {
            logger.error(
                "cannot read item rules; keeping the cost limit of an item",
                metadata: ["app": "\(item.key.app.rawValue)", "reason": "\(error)"])
        }
    }

    // MARK: Arming

    /// - Parameter isNew: Whether the subscription was armed just now.
    func arm(_ armed: ArmedSubscription, isNew: Bool = false, on item: WatchedItem) {
        item.whenStill { item in self.armNow(armed, isNew, on: item) }
    }

    private func armNow(_ armed: ArmedSubscription, _ isNew: Bool, on item: WatchedItem) {
        guard let condition = armed.condition else { return item.arm(armed, isNew: isNew, shape: nil, constants: []) }
        do {
            let (shape, constants) = try shape(of: condition)
            item.arm(armed, isNew: isNew, shape: shape, constants: constants)
            overCost.increment(by: item.index.takeArmedOverCost())
        } catch {
            // An earlier version accepted the condition. The subscription never fires.
            logger.error(
                "cannot read a stored condition; its subscription does not fire",
                metadata: ["app": "\(item.key.app.rawValue)", "subscription": "\(armed.target.subscription.rawValue)"])
        }
    }

    private func shape(of condition: WatchedCondition) throws -> (shape: Int, constants: [ExpressionValue]) {
        let values = condition.constants.flatMap(ValueCoding.values)
        if let known = shapes.known(condition.shape), let values, shapes.entries[known]?.shape.constantCount == values.count
        {
            return (known, values)
        }
        let program = try ExpressionProgram.unchecked(condition.source, in: conditions.environment)
        // The source may be the source of another condition with the same shape.
        if let values, values.count == program.constants.count { return (try shapes.number(of: program), values) }
        guard values == nil else {
            throw Refusal(
                .triggerInvalid, "Another version of the server stored the condition; create the subscription again.")
        }
        return (try shapes.number(of: program), program.constants)
    }

    /// Returns why an item cannot accept a condition of an owner; nil if it can.
    func refusal(of program: ExpressionProgram, on key: ItemKey, by owner: ConditionOwner) async throws -> String? {
        guard let shape = try? shapes.number(of: program) else { return nil }
        defer { shapes.forget(shape) }
        let index = try await item(key).index
        let added = index.usage(adding: shape, program.constants, in: shapes)
        let all = ConditionUsage(
            unguarded: index.unguardedCount, guarded: index.guardedCount, constantBytes: index.constantBytes,
            compared: index.comparedCount)
        for limit in limits.ofConditions {
            let more = added[keyPath: limit.path]
            // A condition that uses nothing more is accepted even if the limit was lowered.
            guard more > 0 else { continue }
            let quota = max(1, limit.most * limits.quotaPercent / 100)
            if index.usage(of: owner)[keyPath: limit.path] + more > quota {
                return """
                    The item "\(key.name)" can have up to \(limit.most) \(limit.what). The quota of one user, or of one device \
                    without a user, is \(limits.quotaPercent) % of them, \(quota), and is used up; remove subscriptions first.
                    """
            }
            if all[keyPath: limit.path] + more > limit.most {
                return "The item \"\(key.name)\" has reached its limit of \(limit.most) \(limit.what)."
            }
        }
        return nil
    }
}

extension ItemEngine.Limits {
    fileprivate struct OfConditions {
        var path: KeyPath<ConditionUsage, Int>
        var most: Int
        /// The unit that the limit counts, in the plural.
        var what: String
    }

    fileprivate var ofConditions: [OfConditions] {
        [
            .init(
                path: \.unguarded, most: unguardedPerItem,
                what: "conditions that do not begin with a comparison of a field and a constant"),
            .init(path: \.guarded, most: unguardedPerItem, what: "conditions that no index can evaluate in part"),
            .init(path: \.constantBytes, most: constantBytesPerItem, what: "bytes in the constants of conditions"),
            .init(path: \.compared, most: comparedPerItem, what: "different compared expressions"),
        ]
    }
}
