import CarillonWire
import Logging

/// Delivers the firings of updates to devices.
extension ItemEngine {
    /// Delivers a firing while the updates of its item wait, and makes refused crossings fire with the next update. If the store
    /// fails, the remaining targets stay in the store until ``notifyRest()``.
    ///
    /// - Returns: Whether each target was handled.
    @discardableResult package func notify(_ firing: StoredFiring) async -> Bool {
        let notified = await notifyNow(firing)
        let key = ItemKey(app: firing.firing.app, name: firing.firing.item)
        keepRefused(notified.pending, of: key)
        // This happens before the item accepts updates again, so that the next update evaluates the refused crossings.
        if notified.fault == nil { rearmRefused(of: key, after: firing.number) }
        await note(notified, of: firing)
        return notified.fault == nil
    }

    /// Delivers a firing between two updates of its item. The caller must pass refused targets to ``WatchedItem/rearm(_:)``.
    func deliver(_ firing: StoredFiring) async -> Firings.Notified {
        let notified = await notifyNow(firing)
        await note(notified, of: firing)
        return notified
    }

    /// Applies the result of a delivery to the item in memory, and reads the subscriptions that the result contains.
    private func note(_ notified: Firings.Notified, of firing: StoredFiring) async {
        let key = ItemKey(app: firing.firing.app, name: firing.firing.item)
        underWay.remove(firing.number)
        if let fault = notified.fault {
            items[key]?.blockingFirings.insert(firing.number)
            logger.error(
                "cannot deliver a firing; retrying",
                metadata: ["app": "\(key.app.rawValue)", "reason": "\(fault)"])
        } else {
            isNotified(firing.number, of: key)
        }
        for (subscription, isAwake) in notified.unsettled where isAwake { items[key]?.wakeUp(subscription) }
        do {
            let gone = try await follow(Array(notified.unsettled.keys), looks: false)
            // Missing subscriptions were removed while the item was being loaded.
            for subscription in gone { items[key]?.whenStill { $0.disarm(subscription) } }
        } catch {
            logger.error(
                "cannot read subscriptions; reading them later",
                metadata: ["app": "\(key.app.rawValue)", "reason": "\(error)"])
        }
    }

    private func notifyNow(_ firing: StoredFiring) async -> Firings.Notified {
        do {
            return await firings.notify(firing, cost: try await conditionCost(of: firing.firing.app))
        } catch {
            var notified = Firings.Notified()
            notified.fault = error
            return notified
        }
    }

    /// Keeps refused targets until ``rearmRefused(of:after:)``. An item that is not in memory finds its refused crossings when
    /// it is loaded.
    func keepRefused(_ refused: [Firing.Target], of key: ItemKey) {
        guard !refused.isEmpty, items[key] != nil || loading[key] != nil else { return }
        refusedOfRest[key, default: []].formUnion(refused)
    }

    /// Makes the subscriptions of kept targets fire with the next update, if the item is in memory and no firing delays its
    /// updates.
    ///
    /// - Parameter number: A firing that was delivered and still delays the updates.
    func rearmRefused(of key: ItemKey, after number: Int64? = nil) {
        guard let item = items[key], item.blockingFirings.allSatisfy({ $0 == number }),
            let refused = refusedOfRest.removeValue(forKey: key)
        else { return }
        item.enqueue(.rearm(refused))
        drain(item)
    }

    /// Makes refused crossings fire again, between two updates of their item. Updates can have fired since the refusal, so the
    /// rows decide: a subscription that fired again, or that is a target of a stored firing, is left out.
    func rearm(_ refused: Set<Firing.Target>, to item: WatchedItem) async {
        let crossings = refused.filter { item.isCrossing($0) }
        guard !item.isGone, !crossings.isEmpty else { return }
        do {
            // Firings are read before the rows, so that a firing that is delivered in between is found in one of them.
            let pending = try await store.firingTargets(of: item.key)
            let subscriptions = crossings.map(\.subscription).filter { !pending.contains($0) }
            for start in stride(from: 0, to: subscriptions.count, by: Self.followedAtOnce) {
                let end = min(start + Self.followedAtOnce, subscriptions.count)
                for row in try await store.armed(Array(subscriptions[start..<end]))
                where row.item == item.key && row.isArmed && row.held == false && !row.hasFired {
                    item.rearm(row.target)
                }
            }
        } catch {
            // If the item is not in memory any more, the rows contain its refused crossings.
            if items[item.key] === item { refusedOfRest[item.key, default: []].formUnion(crossings) }
            logger.error(
                "cannot read refused crossings; retrying",
                metadata: ["app": "\(item.key.app.rawValue)", "item": "\(item.key.name)", "reason": "\(error)"])
        }
    }

    private func isNotified(_ number: Int64, of key: ItemKey) {
        items[key]?.blockingFirings.remove(number)
        if loading[key] != nil { notifiedMeanwhile.insert(number) }
    }

    /// Delivers firings that remain after a server was killed or a disk was full. The firings of one item are delivered in their
    /// order. A few items are handled at the same time. Also makes refused crossings fire again whose rows could not be read
    /// before.
    package func notifyRest() async throws {
        for key in Array(refusedOfRest.keys) { rearmRefused(of: key) }
        var last: ItemKey?
        while !Task.isCancelled {
            let some = try await store.itemsWithFirings(in: home.shards, after: last, limit: 64)
            guard let end = some.last else { return }
            last = end
            await withTaskGroup(of: Void.self) { group in
                for (place, key) in some.enumerated() {
                    if place >= Self.restAtOnce { await group.next() }
                    group.addTask { await self.notifyRest(of: key) }
                }
            }
        }
    }

    private func notifyRest(of key: ItemKey) async {
        restTellers[key, default: 0] += 1
        defer {
            let others = restTellers[key, default: 1] - 1
            restTellers[key] = others > 0 ? others : nil
        }
        do {
            while !Task.isCancelled, home.isOpen(key.shard), let next = try await store.nextFiring(of: key) {
                // The item is delivering this firing.
                guard underWay.insert(next.number).inserted else { return }
                switch next {
                case .readable(let firing): guard await notify(firing) else { return }
                case .unreadable(let number):
                    logger.error(
                        "cannot read a firing; dropping it",
                        metadata: ["app": "\(key.app.rawValue)", "item": "\(key.name)"])
                    defer { underWay.remove(number) }
                    try await store.advance(number, to: nil, refused: [])
                    rearmRefused(of: key, after: number)
                    isNotified(number, of: key)
                }
            }
        } catch {
            logger.error(
                "cannot read firings of an item; retrying",
                metadata: ["app": "\(key.app.rawValue)", "reason": "\(error)"])
        }
    }
}
