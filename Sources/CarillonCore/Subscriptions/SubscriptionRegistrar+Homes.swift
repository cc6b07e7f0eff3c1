import CarillonExpression

/// Subscriptions on items of other homes.
extension SubscriptionRegistrar {
    /// Items of a subscription, by their homes.
    struct WatchedPlaces: Sendable {
        typealias Part = (shard: Shard, values: [ItemName])

        /// The items of this home.
        var own: [ItemName]
        /// The items of each other home, with the shard of one of them.
        var elsewhere: [Part] = []
        /// The shards of the items of other homes. Each is there once.
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

    /// Returns why an item cannot take a condition of a device; nil if each can.
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

    /// Returns when the engines of the items know a subscription as it is.
    func follow(_ subscription: SubscriptionSerial, on places: WatchedPlaces) async throws {
        if !places.own.isEmpty { try await engine.follow([subscription], looks: true) }
        for (shard, _) in places.elsewhere {
            try await others.ask(FollowedSubscriptions(at: shard, [subscription], looks: true))
        }
    }

    /// Makes the engines of the items evaluate the subscriptions of a device that was resumed, and ignore those of a suspended
    /// device.
    ///
    /// If a home does not answer, it applies the hand-over of the change later.
    package func deviceChanged(_ device: DeviceSerial) async throws {
        try await engine.follow(device)
        guard !engine.hasAllShards else { return }
        let rows = try await store.armed(try await store.serials(of: device)).filter { !engine.has($0.item) }
        for (shard, rows) in others.parts(of: rows, by: { Shard(of: $0.item.app, item: $0.item.name.text) }) {
            let subscriptions = Set(rows.map(\.target.subscription))
            try await others.ask(FollowedSubscriptions(at: shard, Array(subscriptions), looks: false))
        }
    }

    // MARK: Answers to other homes

    /// Follows subscriptions on items of this home, for the home of their device.
    package func follow(_ question: FollowedSubscriptions) async throws {
        try await engine.follow(question.subscriptions, looks: question.looks)
    }

    /// Returns why an item of this home cannot take a condition; nil if each can.
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
