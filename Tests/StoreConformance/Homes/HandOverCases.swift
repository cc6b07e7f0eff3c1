package import CarillonCore
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let handOvers: [StoreCase] = [
        StoreCase("a device that is suspended or resumed is handed over to the shards of its items", suspensionIsHandedOver),
        StoreCase("a subscription that is removed is handed over to the shard of each item", removalIsHandedOver),
        StoreCase("a subscription that is created or changed is handed over to the named shards", putIsHandedOver),
        StoreCase("hand-overs are read in their order up to a limit, and stay until they are applied", readInOrder),
        StoreCase("a home finds hand-overs to its shards alone", handOversOfShards),
        StoreCase("waiting hand-overs are counted up to a limit, and the first is found", waitingOnesAreCounted),
        StoreCase("a hand-over that is applied twice changes nothing the second time", appliedTwice),
        StoreCase("a shape that a subscription uses stays when hand-overs of others are applied", usedShapeStays),
        StoreCase("hand-overs are kept in a store that is opened again", handOversAreKept),
        StoreCase("hand-overs stay if their removal fails", failedRemoval),
    ]
}

extension HandOverStore {
    /// Returns all hand-overs that are not applied.
    package func handOvers() async throws -> [HandOver] { try await handOvers(in: .all, limit: 10_000) }

    /// Returns the first hand-overs to shards of a set that are not applied.
    package func handOvers(in shards: ShardSet, limit: Int) async throws -> [HandOver] {
        try await handOvers(in: shards, after: 0, limit: limit)
    }

    /// Applies hand-overs with the changes that belong to them.
    package func apply(_ handOvers: [HandOver]) async throws {
        try await applyHandOvers(handOvers.map { AppliedHandOver($0) })
    }
}

extension SubscriptionFixture {
    fileprivate func shard(_ item: String) throws -> Shard {
        let key = try self.item(item)
        return Shard(of: key.app, item: key.name.text)
    }

    /// Ends and removes a subscription.
    fileprivate func remove(_ subscription: Subscription) async throws {
        _ = try await store.endSubscriptions([subscription.serial], of: subscription.device)
        let ended = EndedSubscription(serial: subscription.serial, device: subscription.device)
        try await store.removeSubscriptions([ended], at: Self.start)
    }
}

/// A subscription that was removed, and the item that forgets it.
private struct Removal: Hashable {
    var subscription: SubscriptionSerial
    var item: ItemKey
    var hasShape: Bool

    init(_ subscription: Subscription, _ item: ItemKey, hasShape: Bool = false) {
        self.subscription = subscription.serial
        self.item = item
        self.hasShape = hasShape
    }

    init?(_ handOver: HandOver) {
        guard case .subscriptionRemoved(let subscription, from: let item?, shape: let shape)? = ItemHandOver(handOver) else {
            return nil
        }
        self.subscription = subscription
        self.item = item
        hasShape = shape != nil
    }
}

private func suspensionIsHandedOver(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    var said = DeviceProfile()
    said.locale = "de"
    let devices = [try await fixture.anotherDevice(1, profile: said).serial, try await fixture.anotherDevice(2).serial]
    let without = try await fixture.anotherDevice(3).serial
    for (place, device) in devices.enumerated() {
        let first = UInt64(place) * 3 + 1
        _ = try await fixture.subscribe(first, ["a", "b"], of: device)
        _ = try await fixture.subscribe(first + 1, ["a"], of: device)
        let ended = try await fixture.subscribe(first + 2, ["c"], of: device)
        _ = try await store.endSubscriptions([ended.serial], of: device)
    }
    #expect(try await store.handOvers().isEmpty)
    let shards = Set([try fixture.shard("a"), try fixture.shard("b")])
    for device in devices + [without] { try await fixture.suspend(device) }
    let suspended = try await store.handOvers()
    #expect(suspended.count == 2 * shards.count, "each shard has one hand-over of a device")
    for device in devices {
        let found = suspended.filter { ItemHandOver($0) == .subscriptionsChanged(of: device) }
        #expect(Set(found.map(\.shard)) == shards)
    }
    try await fixture.resume(devices[1])
    let all = try await store.handOvers()
    #expect(Array(all.prefix(suspended.count)) == suspended)
    let resumed = all.dropFirst(suspended.count)
    #expect(Set(resumed.map(\.shard)) == shards && resumed.count == shards.count)
    #expect(resumed.allSatisfy { ItemHandOver($0) == .subscriptionsChanged(of: devices[1]) })
}

private func putIsHandedOver(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    var request = fixture.request(1, try SubscriptionFixture.definition(["a", "b"], key: "k"))
    let subscription = try await fixture.subscribe(request)
    #expect(try await store.handOvers().isEmpty)
    let shards = [Shard(number: 3), Shard(number: 700)]
    request.otherShards = shards
    guard case .same = try await fixture.put(request) else { throw StoreFixture.Missing() }
    #expect(try await store.handOvers().isEmpty)

    request.changed = subscription.id
    guard case .changed = try await fixture.put(request) else { throw StoreFixture.Missing() }
    var other = fixture.request(2, try SubscriptionFixture.definition(["a"]))
    other.otherShards = shards
    let made = try await fixture.subscribe(other)
    let handOvers = try await store.handOvers()
    #expect(handOvers.map(\.shard) == shards + shards)
    let expected = [subscription, subscription, made, made].map { ItemHandOver.subscriptionPut($0.serial) }
    #expect(handOvers.map { ItemHandOver($0) } == expected)

    other.limit = 0
    #expect(try await fixture.put(other) == .tooMany)
    #expect(try await store.handOvers() == handOvers)
    try await store.apply(handOvers)
    #expect(try await store.handOvers().isEmpty)
}

private func removalIsHandedOver(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let other = try await fixture.anotherDevice()
    let condition = WatchedCondition(shape: "price > $", source: "price > 5", constants: [1, 2])
    // The second name begins with a character that combines with the one before it.
    let names = ["a b", "\u{301}c"]
    let definition = try SubscriptionFixture.definition(names)
    let mine = try await fixture.subscribe(fixture.request(1, definition, condition: condition))
    let others = try await fixture.subscribe(2, ["a b"], of: other.serial)
    _ = try await fixture.subscribe(3, ["a b"])
    _ = try await store.endSubscriptions([mine.serial], of: fixture.device)
    #expect(try await store.handOvers().isEmpty, "it is not removed yet")
    try await fixture.remove(mine)
    let items = [try fixture.item(names[0]), try fixture.item(names[1])]
    let removed = try await store.handOvers()
    #expect(removed.count == 2)
    let expected = Set(items.map { Removal(mine, $0, hasShape: true) })
    #expect(Set(removed.compactMap { Removal($0) }) == expected)
    let shards = [try fixture.shard(names[0]), try fixture.shard(names[1])]
    #expect(Set(removed.map(\.shard)) == Set(shards))
    try await store.apply(removed)
    _ = try await store.deleteDevice(other.serial, at: start)
    let deleted = try await store.handOvers()
    #expect(deleted.compactMap { Removal($0) } == [Removal(others, items[0])])
    #expect(deleted.map(\.shard) == [shards[0]])
}

private func readInOrder(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    var subscriptions: [Subscription] = []
    for number in UInt64(1)...4 { subscriptions.append(try await fixture.subscribe(number, ["a\(number)"])) }
    let order = [2, 0, 3, 1].map { subscriptions[$0] }
    for subscription in order { try await fixture.remove(subscription) }
    let all = try await store.handOvers(in: .all, limit: 9)
    #expect(all.compactMap { Removal($0)?.subscription } == order.map(\.serial))
    #expect(all.map(\.number) == Set(all.map(\.number)).sorted())
    for limit in [1, 3] { #expect(try await store.handOvers(in: .all, limit: limit) == Array(all.prefix(limit))) }
    for (place, handOver) in all.enumerated() {
        let behind = try await store.handOvers(in: .all, after: handOver.number, limit: 2)
        #expect(behind == Array(all.dropFirst(place + 1).prefix(2)))
    }
    try await store.apply(Array(all.prefix(2)))
    #expect(try await store.handOvers(in: .all, limit: 9) == Array(all.suffix(2)))
    try await store.apply([all[3]])
    #expect(try await store.handOvers(in: .all, limit: 9) == [all[2]])
    try await store.apply([])
    #expect(try await store.handOvers(in: .all, limit: 9) == [all[2]])
}

private func handOversOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let (first, second) = (try fixture.shard("a"), try fixture.shard("b"))
    try #require(first != second)
    for number in UInt64(1)...2 { try await fixture.remove(fixture.subscribe(number, ["a"])) }
    try await fixture.remove(fixture.subscribe(3, ["b"]))
    let rest = ShardSet(ShardSet.all.shards.filter { $0 != first && $0 != second })
    let all = try await store.handOvers()
    let expected: [(ShardSet, [Shard])] = [
        (ShardSet([first]), [first, first]), (ShardSet([second]), [second]), (rest, []), (.none, []),
        (.all, [first, first, second]), (ShardSet([first, second]), [first, first, second]),
    ]
    for (set, found) in expected {
        #expect(try await store.handOvers(in: set, limit: 9).map(\.shard) == found)
        #expect(try await store.handOvers(in: set, limit: 1).map(\.shard) == Array(found.prefix(1)))
        let former = try #require(all.first).number
        let behind = try await store.handOvers(in: set, after: former, limit: 9)
        #expect(behind == all.dropFirst().filter { set.contains($0.shard) })
    }
    try await store.apply(store.handOvers(in: ShardSet([first]), limit: 9))
    #expect(try await store.handOvers(in: .all, limit: 9).map(\.shard) == [second])
}

private func waitingOnesAreCounted(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let (first, second) = (try fixture.shard("a"), try fixture.shard("b"))
    try #require(first != second)
    for (number, item) in ["b", "a", "a", "b"].enumerated() {
        try await fixture.remove(fixture.subscribe(UInt64(number + 1), [item]))
    }
    let rest = ShardSet(ShardSet.all.shards.filter { $0 != first && $0 != second })
    let sets: [ShardSet] = [
        .all, .none, rest, ShardSet([first]), ShardSet([second]), ShardSet([first, second]), ShardSet(rest.shards + [first]),
    ]
    for left in [4, 3, 2, 1, 0] {
        let all = try await store.handOvers()
        #expect(all.count == left)
        for set in sets {
            let found = all.filter { set.contains($0.shard) }
            for limit in 1...5 {
                let expected = WaitingHandOvers(count: min(found.count, limit), first: found.first?.number)
                #expect(try await store.waitingHandOvers(in: set, limit: limit) == expected)
            }
        }
        try await store.apply(Array(all.prefix(1)))
    }
}

private func appliedTwice(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    try await fixture.remove(fixture.subscribe(1))
    let applied = try await store.handOvers(in: .all, limit: 9)
    _ = try await concurrently(4) { _ in try await store.apply(applied) }
    #expect(try await store.handOvers(in: .all, limit: 9).isEmpty)
    try await fixture.remove(fixture.subscribe(2))
    let later = try await store.handOvers(in: .all, limit: 9)
    let (former, number) = (try #require(applied.first).number, try #require(later.first).number)
    #expect(number > former, "a number is never used again")
    try await store.apply(applied)
    #expect(try await store.handOvers(in: .all, limit: 9) == later)
    // One was applied before, and one was not.
    try await store.apply(applied + later)
    #expect(try await store.handOvers(in: .all, limit: 9).isEmpty)
}

private func usedShapeStays(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let condition = WatchedCondition(shape: "price > $", source: "price > 5", constants: [1, 2])
    func subscribe(_ number: UInt64) async throws -> Subscription {
        try await fixture.subscribe(fixture.request(number, SubscriptionFixture.definition(), condition: condition))
    }
    func conditions() async throws -> [WatchedCondition?] { try await fixture.armed(on: "a").map(\.condition) }
    try await fixture.remove(subscribe(1))
    let second = try await subscribe(2)
    let first = try await store.handOvers(in: .all, limit: 9)
    try await store.apply(first)
    #expect(try await conditions() == [condition])
    try await fixture.remove(second)
    try await store.apply(store.handOvers(in: .all, limit: 9))
    _ = try await subscribe(3)
    try await store.apply(first)
    #expect(try await conditions() == [condition])
}

private func handOversAreKept(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    for number in UInt64(1)...3 { try await fixture.remove(fixture.subscribe(number)) }
    let all = try await store.handOvers(in: .all, limit: 9)
    try await store.apply([all[0]])
    guard let again = try await stores.restart(store) else { return }
    #expect(try await again.handOvers(in: .all, limit: 9) == Array(all.suffix(2)))
    try await again.apply(all)
    #expect(try await again.handOvers(in: .all, limit: 9).isEmpty)
}

private func failedRemoval(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    try await fixture.remove(fixture.subscribe(1))
    let all = try await store.handOvers(in: .all, limit: 9)
    #expect(all.count == 1)
    stores.refuseChanges(of: store, with: StoreFault(.full, "the disk is full"))
    await #expect(throws: StoreFault.self) { try await store.apply(all) }
    stores.refuseChanges(of: store, with: nil)
    #expect(try await store.handOvers(in: .all, limit: 9) == all)
}
