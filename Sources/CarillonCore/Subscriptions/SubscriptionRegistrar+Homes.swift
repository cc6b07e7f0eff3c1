import CarillonExpression
import Logging

/// Subscriptions on items of other homes.
extension SubscriptionRegistrar {
    /// Items of a subscription, grouped by home.
    struct WatchedPlaces: Sendable {
        typealias Part = (shard: Shard, values: [ItemName])

        /// The items of this home.
        var own: [ItemName]
        /// The items of each other home, with the shard of one of them.
        var elsewhere: [Part] = []
        /// The shards of the items of other homes, without duplicates.
        var shards: [Shard] = []
    }

    func places(of items: [ItemName], of app: AppSerial) -> WatchedPlaces {
        guard !engine.hasAllShards else { return WatchedPlaces(own: items) }
        let isOwn = { (item: ItemName) in engine.has(ItemKey(app: app, name: item)) }
        let rest = items.filter { !isOwn($0) }
        return WatchedPlaces(
            own: items.filter(isOwn), elsewhere: others.parts(of: rest) { Shard(of: app, item: $0.text) },
            shards: ShardSet(rest.map { Shard(of: app, item: $0.text) }).shards)
    }

    /// Returns why an item cannot accept a condition of a device; nil if each item can.
    ///
    /// - Parameter trigger: The source of the condition.
    func refusal(
        of program: ExpressionProgram, _ trigger: String, on places: WatchedPlaces, for device: Device, of user: UserID?
    ) async throws -> String? {
        let owner = ConditionOwner(device: device.serial, user: user)
        for name in places.own {
            let key = ItemKey(app: device.app, name: name)
            if let why = try await engine.refusal(of: program, on: key, by: owner) { return why }
        }
        for (shard, items) in places.elsewhere {
            let question = ConditionRefusal(at: shard, of: trigger, on: items, for: device, of: user)
            if let why = try await others.ask(question) { return why }
        }
        return nil
    }

    /// Returns when the engines of the items have loaded a subscription in its stored state.
    ///
    /// If an item moves, its new home loads the subscription with the item. A home that does not answer applies the hand-over of
    /// the subscription later.
    ///
    /// - Parameter shards: The shards to which the subscription was handed over when this request stored it; nil if an earlier
    ///   request stored it.
    /// - Throws: ``StoreFault`` also if a home does not answer and has no hand-over.
    func follow(_ subscription: Subscription, on places: WatchedPlaces, handedOverTo shards: [Shard]?) async throws {
        if !places.own.isEmpty {
            try await unlessItemsMove { try await engine.follow([subscription.serial], looks: true) }
        }
        for (shard, items) in places.elsewhere {
            let question = FollowedSubscriptions(at: shard, [subscription.serial], looks: true)
            guard let shards else {
                try await others.ask(question)
                continue
            }
            guard let fault = await fault(of: question) else { continue }
            // An item can have moved to the home after the shards of other homes were determined.
            guard items.allSatisfy({ shards.contains(Shard(of: subscription.app, item: $0.text)) }) else {
                throw StoreFault(.outcomeUnknown, "the subscription is stored: \(fault)")
            }
        }
    }

    /// Loads a stored change into the engine. If an item moves, this engine or the item's new home loads the change later.
    private func unlessItemsMove(_ follow: () async throws -> Void) async throws {
        do {
            try await follow()
        } catch let fault as StoreFault where fault.isOfHome {
            engine.logger.warning("cannot follow a subscription yet", metadata: ["reason": "\(fault.message)"])
        }
    }

    /// Makes another home load a stored change. Logs and returns an error.
    private func fault(of question: FollowedSubscriptions) async -> (any Error)? {
        do {
            try await others.ask(question)
            return nil
        } catch {
            engine.logger.warning("another home cannot follow a subscription yet", metadata: ["reason": "\(error)"])
            return error
        }
    }

    /// Makes the engines of the items evaluate the subscriptions of a device that was resumed, and ignore those of a suspended
    /// device.
    ///
    /// If a home does not answer, it applies the hand-over of the change later.
    package func deviceChanged(_ device: DeviceSerial) async throws {
        try await unlessItemsMove { try await engine.follow(device) }
        guard !engine.hasAllShards else { return }
        let rows = try await store.armed(try await store.serials(of: device)).filter { !engine.has($0.item) }
        for (shard, rows) in others.parts(of: rows, by: { Shard(of: $0.item.app, item: $0.item.name.text) }) {
            let subscriptions = Set(rows.map(\.target.subscription))
            _ = await fault(of: FollowedSubscriptions(at: shard, Array(subscriptions), looks: false))
        }
    }

    // MARK: Answers to other homes

    /// Loads subscriptions on items of this home, at the request of the home of their device.
    package func follow(_ question: FollowedSubscriptions) async throws {
        try await engine.follow(question.subscriptions, looks: question.looks)
    }

    /// Returns why an item of this home cannot accept a condition; nil if each item can.
    package func answer(_ question: ConditionRefusal) async throws -> String? {
        let program = try ExpressionProgram.unchecked(question.trigger, in: engine.conditions.environment)
        let owner = ConditionOwner(device: question.device, user: question.user)
        for name in question.items {
            let key = ItemKey(app: question.app, name: name)
            if let why = try await engine.refusal(of: program, on: key, by: owner) { return why }
        }
        return nil
    }

    /// Whether a request at this home is setting the rules of an app.
    package func isSettingRules(of app: AppSerial) -> Bool { rulesBeingSet.contains(app) }
}
