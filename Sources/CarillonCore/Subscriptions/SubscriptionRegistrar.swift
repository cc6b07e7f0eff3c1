import CarillonExpression
package import CarillonWire

/// Creates, changes, lists and removes subscriptions at the request of their devices.
package struct SubscriptionRegistrar: Sendable {
    let store: any SubscriptionStore
    let engine: ItemEngine
    let items: AppItems
    let rulesBeingSet = RulesBeingSet()
    private let home: any LocalHome
    let others: OtherHomes
    private let rateLimits: RateLimits
    private let approvalHooks: any SubscriptionApproval
    private let payloadSize: Firings.PayloadSize
    private let time: TimeSource
    private let random: RandomSource

    package init(
        store: any SubscriptionStore, engine: ItemEngine, items: AppItems, home: any LocalHome, others: OtherHomes,
        rateLimits: RateLimits, approvalHooks: any SubscriptionApproval, payloadSize: @escaping Firings.PayloadSize,
        time: TimeSource, random: RandomSource
    ) {
        self.store = store
        self.engine = engine
        self.items = items
        self.home = home
        self.others = others
        self.rateLimits = rateLimits
        self.approvalHooks = approvalHooks
        self.payloadSize = payloadSize
        self.time = time
        self.random = random
    }

    // MARK: Creation

    /// Creates a subscription. If the device has a subscription with the same key, the call changes it, or leaves it as it is if
    /// nothing differs.
    ///
    /// - Returns: The subscription, and whether it is new. The engine has loaded the subscription and has evaluated its condition
    ///   with the present values of its items.
    package func put(
        _ definition: Subscription.Definition, of device: Device, from address: NetworkAddress?
    ) async throws -> (subscription: Subscription, isNew: Bool) {
        try rateLimits.takeRegistration(of: device.serial, from: address)
        for _ in 0..<Self.changeAttempts {
            if let put = try await put(definition, changing: nil, of: device) { return put }
        }
        throw Self.overtaken
    }

    /// Changes an existing subscription, and arms it also if nothing differs. Concurrent changes are all applied, one after the
    /// other.
    package func change(
        _ id: SubscriptionID, of device: Device, from address: NetworkAddress?,
        _ change: (inout Subscription.Definition) throws(Refusal) -> Void
    ) async throws -> Subscription {
        try rateLimits.takeRegistration(of: device.serial, from: address)
        for _ in 0..<Self.changeAttempts {
            let present = try await find(id, of: device)
            var definition = present.definition
            try change(&definition)
            if let put = try await put(definition, changing: present, of: device) { return put.subscription }
        }
        throw Self.overtaken
    }

    private static let changeAttempts = 5
    private static let overtaken = Refusal(
        .overloaded, "Other requests change the subscription at the same time; retry.", retryAfterSeconds: 1)

    /// Returns nil if a concurrent change of the subscription or of the rules was committed first.
    private func put(
        _ definition: Subscription.Definition, changing present: Subscription?, of device: Device
    ) async throws -> (subscription: Subscription, isNew: Bool)? {
        let (rules, revision) = try await items.revisedRules(of: device.app)
        let places = places(of: definition.items, of: device.app)
        let condition = try await check(definition, rules, places, of: device)
        try await approve(definition, changing: present, of: device)
        var random = random
        let request = SubscriptionRequest(
            proposed: .random(using: &random), changed: present?.id, revision: present?.machine.revision,
            device: device.serial, definition: definition, condition: condition, limit: rules.subscriptionsPerDevice,
            rulesRevision: revision, found: try await found(definition, of: device.app, cost: rules.conditionCost),
            otherShards: places.shards)
        switch try await store.putSubscription(request, at: time.now()) {
        case .made(let subscription): return (try await followed(subscription, handedOverTo: places.shards), true)
        case .changed(let subscription): return (try await followed(subscription, handedOverTo: places.shards), false)
        // An earlier request may have stored the subscription before the server was killed, without an evaluation.
        case .same(let subscription): return (try await followed(subscription, handedOverTo: nil), false)
        case .overtaken, .rulesChanged: return nil
        case .frozen:
            throw Refusal(
                .subscriptionFrozen,
                "Items, fields and mode of a subscription cannot be changed; remove the subscription, and create another.")
        case .tooMany:
            throw Refusal(
                .subscriptionsTooMany,
                "A device of this app can have up to \(rules.subscriptionsPerDevice) subscriptions; remove one first.")
        case .deviceSuspended:
            throw Refusal(
                .deviceSuspended, "The device is suspended and receives no pushes; it must register its push token again.")
        case .deviceGone: throw Refusal(.deviceUnknown, "The device was deleted.")
        case .unknown: throw Self.unknown
        }
    }

    /// Calls the app's approval hook, unless the device has an equal subscription with this key.
    private func approve(
        _ definition: Subscription.Definition, changing present: Subscription?, of device: Device
    ) async throws {
        guard try await approvalHooks.hasHook(device.app) else { return }
        var known = present
        if present == nil, let key = definition.key {
            known = try await store.subscriptions(
                of: device.serial, .init(key: key), after: SubscriptionSerial(0), limit: 1
            ).first
            guard known?.definition != definition else { return }
        }
        let user = try await store.user(of: device.serial)
        let question = SubscriptionQuestion(
            device: device.id, user: user, subscription: known?.id, definition: definition)
        try await approvalHooks.ask(question, of: device.appID, serial: device.app)
    }

    /// Returns the subscription after the engines have loaded it. The subscription may have fired already.
    ///
    /// - Parameter shards: See ``follow(_:on:handedOverTo:)``.
    private func followed(_ subscription: Subscription, handedOverTo shards: [Shard]?) async throws -> Subscription {
        // The places are read after the commit. An item that moves later is loaded with the subscription.
        let places = places(of: subscription.definition.items, of: subscription.app)
        try await follow(subscription, on: places, handedOverTo: shards)
        return try await store.subscription(subscription.id, of: subscription.device) ?? subscription
    }

    private static func closed(_ name: ItemName) -> Refusal {
        Refusal(
            .itemClosed,
            "The item \"\(name)\" is not open to the devices of the app; an operator can open it in the item rules.")
    }

    private static let unknown = Refusal(.subscriptionUnknown, "The device has no such subscription.")

    private func check(
        _ definition: Subscription.Definition, _ rules: ItemRules, _ places: WatchedPlaces, of device: Device
    ) async throws -> WatchedCondition? {
        var types: [String: ExpressionType] = [:]
        var maxBytes: [String: Int] = [:]
        for (place, name) in definition.items.enumerated() {
            let rule = rules.rule(for: name)
            guard rule.isOpen else { throw Self.closed(name) }
            if let mode = definition.mode, mode != rule.mode {
                throw Refusal(
                    .modeForbidden,
                    "The mode of the item \"\(name)\" is \"\(rule.mode.rawValue)\"; set this mode, or leave out \"mode\".")
            }
            for field in definition.fields {
                let type = rule.fields[field]?.type.type ?? .dynamic
                maxBytes[field] = max(maxBytes[field] ?? 0, rule.fields[field]?.maxBytes ?? ItemLimits.valueBytes)
                types[field] = place == 0 || types[field] == type ? type : .dynamic
            }
        }
        let template = try NotificationTemplate(
            definition.format, over: definition.fields, in: engine.conditions, types: types, maxBytes: maxBytes)
        guard template.cost <= rules.conditionCost else {
            throw Refusal(
                .placeholderInvalid,
                "The expressions of the notification's format cost at least \(template.cost) units; the limit is \(rules.conditionCost)."
            )
        }
        if let why = rules.objection(to: template.vocabulary) {
            throw Refusal(.placeholderInvalid, "The notification's format \(why).")
        }
        try checkSize(of: template, definition)
        guard let trigger = definition.trigger else { return nil }
        let program: ExpressionProgram
        do throws(ExpressionRefusal) {
            program = try engine.conditions.condition(trigger, over: types, maxBytes: maxBytes, cost: rules.conditionCost)
        } catch {
            let isCost = error.problems.allSatisfy { $0.code == .cost }
            throw Refusal(isCost ? .triggerForbidden : .triggerInvalid, error.description)
        }
        if let why = rules.objection(to: ItemVocabulary(of: program, over: definition.fields)) {
            throw Refusal(.triggerForbidden, "The trigger \(why).")
        }
        let nodes = engine.conditions.comparedNodes(of: program)
        guard nodes <= SubscriptionLimits.comparedNodes else {
            throw Refusal(
                .triggerForbidden,
                "The trigger compares an expression of \(nodes) names, constants, operators and calls; the limit is \(SubscriptionLimits.comparedNodes)."
            )
        }
        let user = try await store.user(of: device.serial)
        if let why = try await refusal(of: program, trigger, on: places, for: device, of: user) {
            throw Refusal(.triggerForbidden, why)
        }
        let constants = ValueCoding.encode(program.constants)
        guard (constants?.count ?? trigger.utf8.count) * definition.items.count <= SubscriptionLimits.constantBytes else {
            throw Refusal(
                .triggerForbidden,
                "The trigger's constants are too long for \(definition.items.count) items; use shorter constants or fewer items."
            )
        }
        return WatchedCondition(shape: program.shape.key, source: trigger, constants: constants)
    }

    /// Returns, for the policy `everyCrossing`, whether the condition holds on each item now. A condition that holds when the
    /// subscription is armed is not a crossing. An item on which the evaluation exceeds the cost limit is left out.
    private func found(
        _ definition: Subscription.Definition, of app: AppSerial, cost: Int
    ) async throws -> [FoundCondition] {
        guard definition.policy == .everyCrossing, let trigger = definition.trigger else { return [] }
        let program = try ExpressionProgram.unchecked(trigger, in: engine.conditions.environment)
        var found: [FoundCondition] = []
        for name in definition.items {
            let item = try await engine.item(of: ItemKey(app: app, name: name))
            let bindings = item.flatMap { engine.conditions.bindings(name.text, $0.state) }
            var holds = false
            do throws(ExpressionError) {
                if let bindings { holds = try program.holds(bindings, limit: cost) }
            } catch {
                guard error.code != .budget else { continue }
            }
            found.append(FoundCondition(item: name, version: item?.version ?? 0, holds: holds))
        }
        return found
    }

    /// Rejects a format whose notification is too large even before values are inserted.
    private func checkSize(of template: NotificationTemplate, _ definition: Subscription.Definition) throws(Refusal) {
        var state = ItemState(.merge)
        state.apply(.init([:], at: time.now()))
        guard let item = definition.items.first, let bindings = engine.conditions.bindings(item.text, state) else { return }
        var random = random
        let id = SubscriptionID.random(using: &random)
        let rendered = template.render(
            .init(subscription: id, key: definition.key, item: item, state: state, bindings: bindings, reader: Reader()),
            .none)
        let size = payloadSize(
            FiredNotification(
                subscription: id, key: definition.key, item: item.text, at: time.now().milliseconds,
                notification: rendered.json))
        guard size <= SubscriptionLimits.payloadBytes else {
            throw Refusal(
                .notificationTooLarge,
                "The notification has \(size) bytes without values; the limit is \(SubscriptionLimits.payloadBytes)."
            )
        }
    }

    // MARK: Reading

    package func find(_ id: SubscriptionID, of device: Device) async throws -> Subscription {
        guard let subscription = try await store.subscription(id, of: device.serial) else { throw Self.unknown }
        return subscription
    }

    package func list(
        of device: Device, _ filter: SubscriptionFilter, after: SubscriptionSerial, limit: Int
    ) async throws -> [Subscription] {
        try await store.subscriptions(of: device.serial, filter, after: after, limit: limit)
    }

    /// Returns, for each item, why the subscription fires or does not fire with the present values.
    package func explain(_ subscription: Subscription) async throws -> [SubscriptionExplanation] {
        var explanations: [SubscriptionExplanation] = []
        let cost = try await items.rules(of: subscription.app).conditionCost
        for name in subscription.definition.items {
            let item = try await engine.item(of: ItemKey(app: subscription.app, name: name))
            explanations.append(
                try SubscriptionExplanation(
                    of: subscription, on: name, item, in: engine.conditions, cost: cost, at: time.now()))
        }
        return explanations
    }

    // MARK: Ending

    /// Removes subscriptions with their waiting notifications. Returns the number of subscriptions.
    package func remove(_ filter: SubscriptionFilter, of device: Device) async throws -> Int {
        let count = try await store.endSubscriptions(of: device.serial, filter)
        if count > 0 { try await removeEnded(of: device.serial) }
        return count
    }

    /// Removes some subscriptions of a device, and returns their number.
    package func remove(these subscriptions: [SubscriptionSerial], of device: Device) async throws -> Int {
        guard !subscriptions.isEmpty else { return 0 }
        let count = try await store.endSubscriptions(subscriptions, of: device.serial)
        try await removeEnded(of: device.serial)
        return count
    }

    /// Removes ended subscriptions with their envelopes. A subscription ends at the request of its device, when it expires, or
    /// when its user signs out.
    ///
    /// - Parameter device: Nil removes the ended subscriptions of all devices, for example after the server was killed.
    package func removeEnded(of device: DeviceSerial? = nil) async throws {
        var isAnyRemoved = false
        while !Task.isCancelled {
            // The shard of the device can be closing during the call for it.
            let shards = device == nil ? home.shards : .all
            let ended = try await store.endedSubscriptions(of: device, in: shards, limit: Self.atOnce)
            guard !ended.isEmpty else { break }
            isAnyRemoved = true
            try await store.removeSubscriptions(ended, at: time.now())
            for ended in ended {
                let origin = OriginKey(kind: .subscription, serial: ended.serial.rawValue)
                await home.withdraw(.all(of: origin), from: ended.device)
            }
            // The engine frees the memory after each part, because a million subscriptions may end at once.
            try await engine.settle()
        }
        if isAnyRemoved { others.hint(HandOversWait()) }
        try await engine.settle()
    }

    package func endExpired() async throws {
        while !Task.isCancelled {
            let count = try await store.endExpiredSubscriptions(
                in: home.shards, at: time.now(), limit: Self.atOnce)
            if count < Self.atOnce { return }
        }
    }

    static let atOnce = 500
}

extension ValueStyles {
    /// Formats no value.
    package static let none = ValueStyles { _, _, _ in nil }
}
