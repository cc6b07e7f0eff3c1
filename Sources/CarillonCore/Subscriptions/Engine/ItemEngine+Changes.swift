import Logging

/// Loads changed rows of subscriptions.
extension ItemEngine {
    /// Returns when the engine has loaded the stored state of some subscriptions on items of this home. Changes of one
    /// subscription are loaded one after the other, so that the last read is applied last. Other subscriptions are not waited
    /// for.
    ///
    /// - Parameter looks: Whether a subscription that this call arms may fire at once, with the present values of its items.
    /// - Returns: The subscriptions that are not in the store any more.
    @discardableResult package func follow(_ subscriptions: [SubscriptionSerial], looks: Bool) async throws
        -> Set<SubscriptionSerial>
    {
        for subscription in subscriptions { changed[subscription, default: false] = looks || changed[subscription] == true }
        var gone: Set<SubscriptionSerial> = []
        for start in stride(from: 0, to: subscriptions.count, by: Self.followedAtOnce) {
            let some = subscriptions[start..<min(subscriptions.count, start + Self.followedAtOnce)]
            gone.formUnion(try await followSome(some))
        }
        return gone
    }

    private func followSome(_ subscriptions: ArraySlice<SubscriptionSerial>) async throws -> Set<SubscriptionSerial> {
        var gone: Set<SubscriptionSerial> = []
        while true {
            var some: [SubscriptionSerial: Bool] = [:]
            for subscription in subscriptions where !following.contains(subscription) {
                some[subscription] = changed.removeValue(forKey: subscription)
            }
            if some.isEmpty {
                guard subscriptions.contains(where: following.contains) else { return gone }
                await withCheckedContinuation { followers.append($0) }
                continue
            }
            following.formUnion(some.keys)
            defer {
                following.subtract(some.keys)
                let waiting = followers
                followers = []
                for follower in waiting { follower.resume() }
            }
            do {
                gone.formUnion(try await followNow(some))
            } catch {
                changed.merge(some) { $0 || $1 }
                throw error
            }
        }
    }

    /// Returns the subscriptions that are not in the store any more.
    private func followNow(_ subscriptions: [SubscriptionSerial: Bool]) async throws -> Set<SubscriptionSerial> {
        let rows = try await store.armed(Array(subscriptions.keys))
        var wanted: [ItemKey: [ArmedSubscription]] = [:]
        for row in rows where has(row.item) {
            if row.isArmed {
                wanted[row.item, default: []].append(row)
            } else if let item = try await loadedItem(row.item) {
                let subscription = row.target.subscription
                item.whenStill { $0.disarm(subscription) }
            }
        }
        for (key, rows) in wanted {
            let looked = rows.filter { subscriptions[$0.target.subscription] == true }
            // An item that is not in memory finds the rows when it is loaded.
            guard !looked.isEmpty || items[key] != nil || loading[key] != nil else { continue }
            let item = try await itemForArming(key)
            for row in rows {
                if item.watches[row.target.subscription]?.isOf(row.target.revision) == true {
                    item.whenStill { $0.rest(row) }
                } else {
                    arm(row, isNew: subscriptions[row.target.subscription] == true, on: item)
                }
            }
            guard !looked.isEmpty, item.evaluatedVersion > 0 else { continue }
            item.enqueue(.look(looked.map(\.target.subscription)))
            drain(item)
        }
        return Set(subscriptions.keys).subtracting(rows.map(\.target.subscription))
    }

    /// Returns an item with the present cost limit, by which conditions are evaluated when they are armed.
    private func itemForArming(_ key: ItemKey) async throws -> WatchedItem {
        while true {
            let item = try await item(key)
            await updateCostLimit(of: item)
            // The item can have been removed from memory during the call.
            if items[key] === item { return item }
        }
    }

    /// Returns an item that is in memory or is being loaded.
    func loadedItem(_ key: ItemKey) async throws -> WatchedItem? {
        if loading[key] != nil { return try await item(key) }
        return items[key]
    }

    /// Reads subscriptions whose rows could not be read when they changed, and applies hand-overs, so that removed subscriptions
    /// are disarmed.
    ///
    /// If the rows of a subscription or a hand-over cannot be read, the fault is logged and a later call repeats the attempt.
    /// Others are not delayed.
    ///
    /// - Throws: ``StoreFault`` if hand-overs cannot be read or removed.
    package func settle() async throws {
        try await followChanged()
        try await applyHandOvers()
    }

    private func followChanged() async throws {
        var failed = 0
        var first: (any Error)?
        for looks in [true, false] {
            let waiting = changed.filter { $0.value == looks }.map(\.key)
            do {
                try await follow(waiting, looks: looks)
            } catch {
                try Task.checkCancellation()
                // A batch fails if one of its subscriptions cannot be read, so each is read alone.
                for subscription in waiting where changed[subscription] != nil {
                    do {
                        try await follow([subscription], looks: looks)
                    } catch {
                        try Task.checkCancellation()
                        failed += 1
                        first = first ?? error
                    }
                }
            }
        }
        defer { failedSubscriptions = failed }
        guard failed != failedSubscriptions, let first else { return }
        logger.warning(
            "cannot read changed subscriptions; retrying", metadata: ["count": "\(failed)", "error": "\(first)"])
    }

    /// Evaluates subscriptions that were armed and never fired, or whose last crossing was refused, after a start. A server that
    /// was killed may not have evaluated the last of them. The call takes a while if many items have subscriptions.
    ///
    /// - Parameter shards: The shards of the items; nil for all of the home.
    package func checkNeverFired(in shards: ShardSet? = nil) async throws {
        var place = WatchPlace.start
        while !Task.isCancelled {
            let part = try await store.itemsNeverFired(in: shards ?? home.shards, after: place, limit: 1000)
            // An item in memory was evaluated when it was loaded.
            for key in part.items where items[key] == nil && home.has(key.shard) { _ = try await item(key) }
            guard let end = part.end else { return }
            place = end
        }
    }

    /// Loads the subscriptions of a device that was suspended or resumed, or that has another user now.
    package func follow(_ device: DeviceSerial) async throws {
        try await follow(try await store.serials(of: device), looks: false)
    }
}
