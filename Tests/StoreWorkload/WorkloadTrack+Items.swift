import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire

/// Items, subscriptions on them, and firings.
extension WorkloadTrack {
    func item(_ operation: WorkloadOperation) throws -> ItemKey { try item(operation.choice) }

    func item(_ number: Int) throws -> ItemKey {
        guard let name = ItemName("item\(number)") else { throw Missing() }
        return ItemKey(app: app.serial, name: name)
    }

    /// Writes an update of an item with its firings.
    func putItem(_ operation: WorkloadOperation) async throws -> String {
        let key = try item(operation)
        var stored = try await store.item(key) ?? StoredItem(state: ItemState(.merge))
        let price = Double(operation.value)
        stored.state.apply(ItemState.Update(["price": ItemValue(.double(price), digits: String(price))], at: now))
        stored.version += 1
        var targets: [Firing.Target] = []
        for armed in try await store.armed(on: key, after: SubscriptionSerial(0), limit: 100) where armed.isArmed {
            targets.append(armed.target)
        }
        let firing = Firing(item: key.name, app: app.serial, state: stored.state, targets: targets)
        let written = try await store.commitItem(
            ItemCommit(key: key, item: stored, firings: targets.isEmpty ? [] : [firing]))
        // The numbers of firings are the store's.
        return "\(written?.count ?? -1)"
    }

    func subscribe(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let title = JSONValue.Member(name: "title", value: .string("title \(operation.value % 3)"))
        let definition = Subscription.Definition(
            items: [try item(operation).name], fields: ["price"], format: try NotificationFormat(.object([title])),
            policy: operation.value % 2 == 0 ? .once : .every(coolDownSeconds: 60), key: key(operation))
        let request = SubscriptionRequest(
            proposed: SubscriptionID(operation.id), device: device.serial, definition: definition, condition: nil,
            limit: 4)
        return text(try await store.putSubscription(request, at: now))
    }

    private func key(_ operation: WorkloadOperation) -> String { "key\(operation.value % 3)" }

    func unsubscribe(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let filter = SubscriptionFilter(key: key(operation))
        return text(try await store.endSubscriptions(of: device.serial, filter))
    }

    func removeSubscriptions(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let ended = try await store.endedSubscriptions(of: device.serial, in: .all, limit: 10)
        guard !ended.isEmpty else { return Self.nothing }
        try await store.removeSubscriptions(ended, at: now)
        return "removed \(ended.count)"
    }

    /// Hand-overs that the track caused, except those of deleted devices.
    func handOvers() async throws -> [HandOver] {
        let devices = Set(try await devices().map { $0.device.serial })
        return try await store.handOvers(in: .all, after: 0, limit: 10_000).filter { handOver in
            switch ItemHandOver(handOver) {
            case .subscriptionsChanged(of: let device)?: devices.contains(device)
            case .subscriptionRemoved(_, from: let item, shape: _)?: item?.app == app.serial
            case .subscriptionPut?, nil: false
            }
        }
    }

    func applyHandOvers() async throws -> String {
        let handOvers = try await handOvers()
        guard !handOvers.isEmpty else { return Self.nothing }
        try await store.applyHandOvers(handOvers.map { AppliedHandOver($0) })
        return "applied \(handOvers.count)"
    }

    private func firing(_ operation: WorkloadOperation) async throws -> StoredFiring? {
        guard let next = try await store.nextFiring(of: item(operation)) else { return nil }
        guard case .readable(let firing) = next else { throw Missing() }
        return firing
    }

    /// Delivers a firing to its devices, in one transaction.
    func notifyFiring(_ operation: WorkloadOperation) async throws -> String {
        guard let firing = try await firing(operation) else { return Self.nothing }
        let targets = Array(firing.firing.targets.prefix(WorkloadOperation.mostMessages))
        let subjects = try await store.subjects(targets.map(\.subscription))
        let devices = try await devices()
        var changes: [InboxOperation] = []
        for (place, target) in targets.enumerated() {
            guard let subject = subjects.first(where: { $0.serial == target.subscription }),
                let device = devices.first(where: { $0.device.serial == subject.device })?.device
            else { continue }
            let envelope = envelope(
                operation, place, for: device, from: subject.origin, .fired(body: [1, 2, 3], countsBadge: true))
            let effect = Effect.fired(target, on: firing.firing.item, by: firing.number, at: now)
            changes.append(
                .append(envelope, AppendRules(topic: "firing", effects: [effect], wake: WakeRequest(.alert, dueAt: now))))
        }
        guard !changes.isEmpty else { return Self.nothing }
        return text(try await store.commit(changes))
    }

    func advanceFiring(_ operation: WorkloadOperation) async throws -> String {
        guard let firing = try await firing(operation) else { return Self.nothing }
        try await store.advance(firing.number, to: nil, refused: [])
        return "advanced"
    }
}
