import CarillonCore
import CarillonExpression
import CarillonWire
import TestStores
import Testing

private let start = SubscriptionFixture.start

extension StoreCase {
    static let items: [StoreCase] = [
        StoreCase("item rules are unapplied until their present version is marked as applied", rulesAreApplied),
        StoreCase("an item is as its last commit left it", itemIsAsCommitted),
        StoreCase("an item with a value that cannot be stored is not written", unstorableItemIsRefused),
        StoreCase("a deleted app gets neither an item nor its firings", goneAppGetsNoItem),
        StoreCase("concurrent new items do not exceed the limit of their app", itemsAreLimited),
        StoreCase("items are listed by prefix in the order of the bytes of their names", itemsAreListed),
        StoreCase("items without subscriptions are found by the time of their last update", unwatchedItemsAreFound),
        StoreCase("an item is deleted once, with its firings, and kept if it is in use", itemIsDeletedOnce),
        StoreCase("after a deletion subscriptions wait for the first update", subscriptionsAreReset),
        StoreCase("firings of a deleted item do not count for a new item of its name", formerFiringsDoNotCount),
    ]
}

private func rulesAreApplied(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, app) = (fixture.store, fixture.app)
    #expect(try await store.appsWithUnappliedRules().isEmpty)
    let first = try await fixture.setItemRules()
    let second = try await fixture.setItemRules()
    #expect(second > first)
    try await store.markRulesApplied(first, of: app)
    #expect(try await store.appsWithUnappliedRules() == [app], "the app has set other rules")
    try await store.markRulesApplied(second, of: app)
    try await store.markRulesApplied(second, of: app)
    #expect(try await store.appsWithUnappliedRules().isEmpty)
    _ = try await fixture.setItemRules()
    #expect(try await store.appsWithUnappliedRules() == [app])
    try await store.markRulesApplied(second, of: app)
    #expect(try await store.appsWithUnappliedRules() == [app], "these are not the rules of the second setting")
    try await store.setDocument(.parameterRules, of: app, to: "{}")
    #expect(try await store.deleteApp(try StoreFixture.appID, at: start))
    #expect(try await store.appsWithUnappliedRules().isEmpty)
}

private func itemIsAsCommitted(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, key) = (fixture.store, try fixture.item("a"))
    #expect(try await store.item(key) == nil)
    var state = ItemState(.distinct)
    state.apply(.init(["price": ItemValue(.double(1.5)), "name": ItemValue(.string("✓"))], at: start))
    state.apply(.init(["price": ItemValue(.int(2))], at: start.adding(seconds: 1)))
    let places = [ItemUpdate.Place(source: "one", sequence: 7), .init(source: "other", sequence: .max)]
    let item = StoredItem(state: state, version: 2, places: places)
    #expect(try await store.commitItem(ItemCommit(key: key, item: item, firings: [])) == [])
    let found = try #require(try await store.item(key))
    #expect(found.state.mode == .distinct && found.version == 2 && found.places == places)
    #expect(found.state.fields.mapValues(\.text) == ["price": "2"])
    #expect(found.state.previous?.mapValues(\.text) == state.previous?.mapValues(\.text))
    #expect(found.state.previous?.count == 2)
    #expect(found.state.updatedAt == start.adding(seconds: 1))
    // A later commit replaces everything.
    try await fixture.update("a", version: 3)
    let later = try #require(try await store.item(key))
    #expect(later.version == 3 && later.places.isEmpty && later.state.previous == nil && later.state.mode == .merge)
    #expect(try await store.item(ItemKey(app: AppSerial(key.app.rawValue + 1), name: key.name)) == nil)
}

private func unstorableItemIsRefused(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let key = try fixture.item("a")
    let (good, bad) = (["x": ItemValue(.int(1))], ["x": ItemValue(.type(.int))])
    for (fields, previous) in [(bad, good), (good, bad)] {
        let state = ItemState(.merge, fields: fields, previous: previous, updatedAt: start)
        await #expect(throws: StoreFault.self) {
            try await fixture.store.commitItem(ItemCommit(key: key, item: StoredItem(state: state), firings: []))
        }
    }
    #expect(try await fixture.store.item(key) == nil)
}

private func goneAppGetsNoItem(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let subscription = try await fixture.subscribe(1)
    #expect(try await fixture.store.deleteApp(try StoreFixture.appID, at: start))
    #expect(try await fixture.update("a", firing: [[fixture.target(subscription)]]) == nil)
    #expect(try await fixture.store.item(fixture.item("a")) == nil)
    #expect(try await fixture.store.firingNumbers(of: fixture.item("a")).isEmpty)
}

private func itemsAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    try await stores.setItemCount(ItemLimits.itemsPerApp - 2, in: fixture.store)
    let commits = try await concurrently(6) { try await fixture.update("a\($0)") }
    #expect(commits.compactMap(\.self).count == 2)
    let items = try await fixture.store.items(of: fixture.app, prefix: "", after: "", limit: 10)
    #expect(items.count == 2)
    let one = try #require(items.first)
    #expect(try await fixture.update(one.name.text, version: 2) != nil, "it is there")
    #expect(try await fixture.update("b") == nil)
    #expect(try await fixture.store.deleteItem(fixture.item(one.name.text), ifIdleSince: nil))
    #expect(try await fixture.update("b") != nil)
    #expect(try await fixture.update("c") == nil)
}

private func itemsAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    for name in ["b", "ab", "a", "é", "aé", "a%", "A"] { try await fixture.update(name, version: 4) }
    func names(_ prefix: String, after name: String = "", limit: Int = 100) async throws -> [String] {
        try await fixture.store.items(of: fixture.app, prefix: prefix, after: name, limit: limit).map(\.name.text)
    }
    #expect(try await names("") == ["A", "a", "a%", "ab", "aé", "b", "é"])
    #expect(try await names("a") == ["a", "a%", "ab", "aé"])
    #expect(try await names("a", limit: 2) == ["a", "a%"])
    #expect(try await names("a", after: "a%", limit: 2) == ["ab", "aé"])
    #expect(try await names("a", after: "A") == ["a", "a%", "ab", "aé"])
    #expect(try await names("a", after: "b").isEmpty)
    #expect(try await names("a%") == ["a%"], "a prefix is no pattern")
    _ = try await fixture.subscribe(1)
    let ended = try await fixture.subscribe(2)
    #expect(try await fixture.store.endSubscriptions([ended.serial], of: fixture.device) == 1)
    let listed = try await fixture.store.items(of: fixture.app, prefix: "a", after: "", limit: 1)
    #expect(
        listed == [ListedItem(name: try fixture.item("a").name, version: 4, updatedAt: start, subscriptions: 1)])
    let other = AppSerial(fixture.app.rawValue + 1)
    #expect(try await fixture.store.items(of: other, prefix: "", after: "", limit: 9).isEmpty)
}

private func unwatchedItemsAreFound(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    for (place, name) in ["a", "b", "c", "d"].enumerated() {
        try await fixture.update(name, at: start.adding(seconds: Int64(place)))
    }
    _ = try await fixture.subscribe(1, ["b"])
    func found(_ seconds: Int64, limit: Int) async throws -> [String] {
        var (names, place) = ([String](), String?.some(""))
        // Each part reads at most the limit of rows.
        while let after = place {
            let part = try await fixture.store.unwatchedItems(
                of: fixture.app, updatedBy: start.adding(seconds: seconds), after: after, limit: limit)
            #expect(part.items.count <= limit)
            names += part.items.map(\.name.text)
            place = part.end
        }
        return names
    }
    for limit in [1, 2, 100] {
        #expect(try await found(1, limit: limit) == ["a"])
        #expect(try await found(2, limit: limit) == ["a", "c"])
        #expect(try await found(3, limit: limit) == ["a", "c", "d"])
        #expect(try await found(-1, limit: limit).isEmpty)
    }
}

private func itemIsDeletedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, key) = (fixture.store, try fixture.item("a"))
    try await fixture.update("a")
    #expect(try await !store.deleteItem(key, ifIdleSince: start.adding(milliseconds: -1)), "it was updated since")
    #expect(try await store.item(key) != nil)
    let deletions = try await concurrently(5) { _ in try await store.deleteItem(key, ifIdleSince: start) }
    #expect(deletions.filter(\.self).count == 1)
    #expect(try await store.item(key) == nil)
    let subscription = try await fixture.subscribe(1)
    #expect(try await fixture.update("a", firing: [[fixture.target(subscription)]])?.count == 1)
    #expect(try await !store.deleteItem(key, ifIdleSince: start.adding(seconds: 60)), "it has a subscription")
    #expect(try await store.firingNumbers(of: key).count == 1)
    #expect(try await store.deleteItem(key, ifIdleSince: nil))
    #expect(try await store.firingNumbers(of: key).isEmpty)
    #expect(try await store.itemsWithFirings(after: nil, limit: 9).isEmpty)
    #expect(try await store.subscription(subscription.id, of: fixture.device) == subscription)
    #expect(try await !store.deleteItem(key, ifIdleSince: nil))
}

private func reset(_ item: String, _ fixture: SubscriptionFixture, all: Bool, limit: Int) async throws {
    var place: SubscriptionSerial? = SubscriptionSerial(0)
    while let after = place {
        place = try await fixture.store.resetSubscriptions(
            on: fixture.item(item), after: after, limit: limit, all: all)
        if let place { #expect(place > after) }
    }
}

private func subscriptionsAreReset(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, key) = (fixture.store, try fixture.item("a"))
    try await fixture.update("a", version: 5)
    var subscriptions: [Subscription] = []
    for number in UInt64(1)...3 { subscriptions.append(try await fixture.subscribe(number)) }
    let target = fixture.target(subscriptions[0])
    let numbers = try #require(try await fixture.update("a", version: 6, firing: [[target], [target]]))
    #expect(try await fixture.fire(1, subscriptions[0], by: numbers[0]) == .stored(replaced: nil))
    #expect(
        try await store.throttle([fixture.held(subscriptions[0], by: numbers[1])], at: start) == [.throttled(insteadOf: 0)])
    try await reset("a", fixture, all: true, limit: 100)
    #expect(try await fixture.armed(on: "a").map(\.since) == [5, 5, 5], "the item has a row")
    #expect(try await store.nextThrottledFiring() != nil)
    #expect(try await store.deleteItem(key, ifIdleSince: nil))
    try await reset("a", fixture, all: false, limit: 1)
    let armed = try await fixture.armed(on: "a")
    #expect(armed.map(\.since) == [0, 0, 0] && armed.map(\.held) == [false, false, false])
    #expect(armed.map(\.hasFired) == [false, false, false])
    #expect(try await store.nextThrottledFiring() == nil)
}

private func formerFiringsDoNotCount(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    // Both wait for the first update.
    let first = try await fixture.subscribe(1)
    let second = try await fixture.subscribe(2)
    let targets = [first, second].map(fixture.target)
    let former = try #require(try await fixture.update("a", firing: [targets]))
    #expect(try await fixture.store.deleteItem(fixture.item("a"), ifIdleSince: nil))
    #expect(try await fixture.fire(1, first, by: former[0]) == .originGone, "there is no item")
    try await reset("a", fixture, all: true, limit: 1)
    let later = try #require(try await fixture.update("a", firing: [targets]))
    for (position, subscription) in [first, second].enumerated() {
        let position = 10 * Int64(position)
        #expect(try await fixture.fire(position + 2, subscription, by: former[0]) == .originGone)
        #expect(try await fixture.fire(position + 3, subscription, by: later[0]) == .stored(replaced: nil))
    }
}
