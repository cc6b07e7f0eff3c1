import CarillonExpression
package import CarillonWire

/// Makes subscriptions, changes them, lists them and takes them away, as their devices ask for it.
package struct SubscriptionRegistrar: Sendable {
    let store: any SubscriptionStore
    let engine: ItemEngine
    let items: AppItems
    let rulesBeingSet = RulesBeingSet()
    private let home: any LocalHome
    let others: OtherHomes
    private let allowances: Allowances
    private let approvalHooks: any SubscriptionApproval
    private let payloadSize: Firings.PayloadSize
    private let time: TimeSource
    private let random: RandomSource

    package init(
        store: any SubscriptionStore, engine: ItemEngine, items: AppItems, home: any LocalHome, others: OtherHomes,
        allowances: Allowances, approvalHooks: any SubscriptionApproval, payloadSize: @escaping Firings.PayloadSize,
        time: TimeSource, random: RandomSource
    ) {
        self.store = store
        self.engine = engine
        self.items = items
        self.home = home
        self.others = others
        self.allowances = allowances
        self.approvalHooks = approvalHooks
        self.payloadSize = payloadSize
        self.time = time
        self.random = random
    }

    // MARK: Making

    /// Makes a subscription; where the device has one of the same key, that is changed, or stays where nothing differs.
    ///
    /// - Returns: It, and whether it is a new one. It is watched, and its condition was looked at with what stands in its items.
    package func put(
        _ definition: Subscription.Definition, of device: Device, from address: NetworkAddress?
    ) async throws -> (subscription: Subscription, isNew: Bool) {
        try allowances.takeRegistration(of: device.serial, from: address)
        for _ in 0..<Self.changeAttempts {
            if let put = try await put(definition, changing: nil, of: device) { return put }
        }
        throw Self.overtaken
    }

    /// Changes one that is there: it is armed anew, be the change as small as none. Of two changes at a time each is made.
    package func change(
        _ id: SubscriptionID, of device: Device, from address: NetworkAddress?,
        _ change: (inout Subscription.Definition) throws(Refusal) -> Void
    ) async throws -> Subscription {
        try allowances.takeRegistration(of: device.serial, from: address)
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

    /// Returns nil if another change, of the subscription or of the rules, was faster.
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
        // It may be the one of a request that was not answered, as the server was killed before it looked.
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

    /// Asks the app, but for what is there already, and stays as it is.
    private func approve(
        _ definition: Subscription.Definition, changing present: Subscription?, of device: Device
    ) async throws {
        guard try await approvalHooks.isAsked(device.app) else { return }
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

    /// As it is once it is watched: it may have fired already.
    ///
    /// - Parameter shards: See ``follow(_:on:handedOverTo:)``.
    private func followed(_ subscription: Subscription, handedOverTo shards: [Shard]?) async throws -> Subscription {
        // Read after the commit: an item that moves later is loaded with the subscription.
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

    /// Returns whether the condition of a crossing holds on each item now: what holds when it is armed is no crossing. An item on which
    /// its evaluation costs too much is left out.
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

    /// What the texts come to before any value stands in them.
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

    // MARK: Looking

    package func find(_ id: SubscriptionID, of device: Device) async throws -> Subscription {
        guard let subscription = try await store.subscription(id, of: device.serial) else { throw Self.unknown }
        return subscription
    }

    package func list(
        of device: Device, _ filter: SubscriptionFilter, after: SubscriptionSerial, limit: Int
    ) async throws -> [Subscription] {
        try await store.subscriptions(of: device.serial, filter, after: after, limit: limit)
    }

    /// Why it fires with what stands in each of its items, or does not.
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

    /// Takes subscriptions away, and what waits of them. Answers how many it was.
    package func remove(_ filter: SubscriptionFilter, of device: Device) async throws -> Int {
        let count = try await store.endSubscriptions(of: device.serial, filter)
        if count > 0 { try await removeEnded(of: device.serial) }
        return count
    }

    /// The same of some of a device's.
    package func remove(these subscriptions: [SubscriptionSerial], of device: Device) async throws -> Int {
        guard !subscriptions.isEmpty else { return 0 }
        let count = try await store.endSubscriptions(subscriptions, of: device.serial)
        try await removeEnded(of: device.serial)
        return count
    }

    /// Takes those out of their inboxes that ended: by their device's request, with their time, or as their user signed out.
    ///
    /// - Parameter device: Nil for those of all devices, as a server left them that was killed meanwhile.
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
            // Gives back the memory of each part, as a million may end at once.
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
    /// Shows nothing.
    package static let none = ValueStyles { _, _, _ in nil }
}
