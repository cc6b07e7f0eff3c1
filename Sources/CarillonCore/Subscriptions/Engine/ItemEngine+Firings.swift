import CarillonWire
import Logging

/// What updates fired, on its way to the devices.
extension ItemEngine {
    /// Delivers a firing beside the updates of its item, and makes refused crossings fire with the next update. Targets that cannot be
    /// reached because the store fails stay in the store until ``tellRest()``.
    ///
    /// - Returns: Whether each target was handled.
    @discardableResult package func tell(_ firing: StoredFiring) async -> Bool {
        let told = await tellNow(firing)
        // Before the item takes updates again, so that the next update finds them.
        giveBack(told.untold, of: ItemKey(app: firing.firing.app, name: firing.firing.item))
        await note(told, of: firing)
        return told.fault == nil
    }

    /// Delivers a firing between two updates of its item. The caller must pass refused targets to ``WatchedItem/giveBack(_:)``.
    func deliver(_ firing: StoredFiring) async -> Firings.Told {
        let told = await tellNow(firing)
        await note(told, of: firing)
        return told
    }

    /// Notes the result of a delivery in memory, and reads the subscriptions that it names.
    private func note(_ told: Firings.Told, of firing: StoredFiring) async {
        let key = ItemKey(app: firing.firing.app, name: firing.firing.item)
        underWay.remove(firing.number)
        if let fault = told.fault {
            items[key]?.heldUp.insert(firing.number)
            logger.error(
                "a firing could not be told, and is tried again",
                metadata: ["app": "\(key.app.rawValue)", "reason": "\(fault)"])
        } else {
            isTold(firing.number, of: key)
        }
        for (subscription, isAwake) in told.unsettled where isAwake { items[key]?.wakeUp(subscription) }
        do {
            let gone = try await follow(Array(told.unsettled.keys), looks: false)
            // Those that are there no more were taken away while the item was loaded.
            for subscription in gone { items[key]?.whenStill { $0.disarm(subscription) } }
        } catch {
            logger.error(
                "subscriptions could not be read, and are looked at later",
                metadata: ["app": "\(key.app.rawValue)", "reason": "\(error)"])
        }
    }

    private func tellNow(_ firing: StoredFiring) async -> Firings.Told {
        do {
            return await firings.tell(firing, cost: try await conditionCost(of: firing.firing.app))
        } catch {
            var told = Firings.Told()
            told.fault = error
            return told
        }
    }

    /// Makes subscriptions whose crossing was refused beside the updates of the item fire with the next update. An item that is not in
    /// memory finds them when it is loaded.
    func giveBack(_ refused: [Firing.Target], of key: ItemKey) {
        guard !refused.isEmpty else { return }
        if let item = items[key] {
            item.enqueue(.giveBack(refused))
            drain(item)
        } else if loading[key] != nil {
            refusedMeanwhile[key, default: []] += refused
        }
    }

    /// Gives refused crossings back between two updates of their item. Updates can have fired since the refusal, so the rows decide: a
    /// subscription that fired again, or that a stored firing names, is left out.
    func giveBack(_ refused: [Firing.Target], to item: WatchedItem) async {
        let crossings = refused.filter { item.isCrossing($0) }
        guard !item.isGone, !crossings.isEmpty else { return }
        do {
            // Before the rows: a firing that is delivered meanwhile is found here or there.
            let pending = try await store.firingTargets(of: item.key)
            let subscriptions = crossings.map(\.subscription).filter { !pending.contains($0) }
            for start in stride(from: 0, to: subscriptions.count, by: Self.followedAtOnce) {
                let end = min(start + Self.followedAtOnce, subscriptions.count)
                for row in try await store.armed(Array(subscriptions[start..<end]))
                where row.item == item.key && row.isArmed && row.held == false && !row.hasFired {
                    item.giveBack(row.target)
                }
            }
        } catch {
            logger.error(
                "cannot read refused crossings; they fire when the item is loaded again",
                metadata: ["app": "\(item.key.app.rawValue)", "item": "\(item.key.name)", "reason": "\(error)"])
        }
    }

    private func isTold(_ number: Int64, of key: ItemKey) {
        items[key]?.heldUp.remove(number)
        if loading[key] != nil { toldMeanwhile.insert(number) }
    }

    /// Tells what was left, as by a server that was killed or a disk that was full: those of an item in their order, and of a few
    /// items at a time.
    package func tellRest() async throws {
        var last: ItemKey?
        while !Task.isCancelled {
            let some = try await store.itemsWithFirings(in: home.shards, after: last, limit: 64)
            guard let end = some.last else { return }
            last = end
            await withTaskGroup(of: Void.self) { group in
                for (place, key) in some.enumerated() {
                    if place >= Self.restAtOnce { await group.next() }
                    group.addTask { await self.tellRest(of: key) }
                }
            }
        }
    }

    private func tellRest(of key: ItemKey) async {
        restTellers[key, default: 0] += 1
        defer {
            let others = restTellers[key, default: 1] - 1
            restTellers[key] = others > 0 ? others : nil
        }
        do {
            while !Task.isCancelled, home.isOpen(key.shard), let next = try await store.nextFiring(of: key) {
                // The item tells it itself.
                guard underWay.insert(next.number).inserted else { return }
                switch next {
                case .readable(let firing): guard await tell(firing) else { return }
                case .unreadable(let number):
                    logger.error(
                        "a firing cannot be read, and is given up",
                        metadata: ["app": "\(key.app.rawValue)", "item": "\(key.name)"])
                    defer { underWay.remove(number) }
                    try await store.advance(number, to: nil, refused: [])
                    isTold(number, of: key)
                }
            }
        } catch {
            logger.error(
                "what an item fired could not be read, and is tried again",
                metadata: ["app": "\(key.app.rawValue)", "reason": "\(error)"])
        }
    }
}
