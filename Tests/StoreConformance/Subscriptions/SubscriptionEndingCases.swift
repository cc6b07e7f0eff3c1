import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = SubscriptionFixture.start

extension StoreCase {
    static let subscriptionEnding: [StoreCase] = [
        StoreCase("subscriptions of a device are ended by a filter, each once", endedByFilter),
        StoreCase("only subscriptions of the device in a list are ended", endedByList),
        StoreCase("subscriptions are ended by rules only while the rules are the app's", endedByRules),
        StoreCase("a subscription expires at its moment", subscriptionExpires),
        StoreCase("an ended subscription leaves the store with its envelopes", endedSubscriptionIsRemoved),
        StoreCase("items with subscriptions and their subscribers are listed in order", subscribersAreListed),
    ]
}

private func endedByFilter(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    for number in UInt64(1)...6 {
        let definition = try SubscriptionFixture.definition(
            key: "k\(number)", tags: number % 2 == 0 ? ["even"] : ["odd"])
        _ = try await fixture.subscribe(fixture.request(number, definition))
    }
    let other = try await fixture.anotherDevice()
    let kept = try await fixture.subscribe(
        fixture.request(9, SubscriptionFixture.definition(key: "k1", tags: ["even"]), of: other.serial))
    #expect(try await store.endSubscriptions(of: device, SubscriptionFilter(key: "k1")) == 1)
    #expect(try await store.endSubscriptions(of: device, SubscriptionFilter(key: "k1")) == 0)
    #expect(try await store.endSubscriptions(of: device, SubscriptionFilter(tag: "even")) == 3)
    #expect(try await store.endSubscriptions(of: device, SubscriptionFilter(status: .triggered)) == 0)
    let counts = try await concurrently(4) { _ in try await store.endSubscriptions(of: device, SubscriptionFilter()) }
    #expect(counts.reduce(0, +) == 2, "each ends once")
    #expect(
        try await store.subscriptions(of: device, .init(), after: SubscriptionSerial(0), limit: 9).isEmpty)
    #expect(try await fixture.armed(on: "a").map(\.target.subscription) == [kept.serial])
}

private func endedByList(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    let other = try await fixture.anotherDevice()
    let mine = [try await fixture.subscribe(1), try await fixture.subscribe(2)].map(\.serial)
    let others = try await fixture.subscribe(3, of: other.serial)
    #expect(try await store.endSubscriptions(mine + [others.serial], of: device) == 2)
    #expect(try await store.endSubscriptions(mine, of: device) == 0)
    #expect(try await store.endSubscriptions([], of: device) == 0)
    #expect(try await store.subscription(others.id, of: other.serial) == others)
    #expect(try await Set(store.endedSubscriptions(of: nil, limit: 9).map(\.serial)) == Set(mine))
}

private func endedByRules(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, app) = (fixture.store, fixture.app)
    let other = try await fixture.anotherDevice()
    let all = [try await fixture.subscribe(1), try await fixture.subscribe(2, of: other.serial)].map(\.serial)
    let first = try await fixture.setItemRules()
    let second = try await fixture.setItemRules()
    #expect(try await store.endSubscriptions(all, of: app, rulesRevision: first) == nil)
    #expect(try await fixture.armed(on: "a").count == 2)
    #expect(try await store.endSubscriptions(all, of: app, rulesRevision: second) == 2)
    #expect(try await store.endSubscriptions(all, of: app, rulesRevision: second) == 0)
    #expect(try await fixture.armed(on: "a").isEmpty)
}

private func subscriptionExpires(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let end = start.adding(seconds: 50)
    var made: [Subscription] = []
    for number in UInt64(1)...3 {
        made.append(try await fixture.subscribe(fixture.request(number, SubscriptionFixture.definition(expiresAt: end))))
    }
    let lasting = try await fixture.subscribe(4)
    let numbers = try #require(
        try await fixture.update("a", firing: [[fixture.target(made[0])], [fixture.target(made[1])]]))
    #expect(try await store.endExpiredSubscriptions(at: end.adding(milliseconds: -1), limit: 9) == 0)
    let last = end.adding(milliseconds: -1)
    #expect(try await fixture.fire(1, made[0], by: numbers[0], at: last) == .stored(replaced: nil))
    #expect(try await fixture.fire(2, made[1], by: numbers[1], at: end) == .originGone, "its time is over")
    #expect(try await store.endExpiredSubscriptions(at: end, limit: 2) == 2)
    #expect(try await store.endExpiredSubscriptions(at: end, limit: 2) == 1)
    #expect(try await store.endExpiredSubscriptions(at: end, limit: 2) == 0)
    #expect(try await store.serials(of: fixture.device).contains(lasting.serial))
    #expect(try await fixture.armed(on: "a").map(\.target.subscription) == [lasting.serial])
}

private func endedSubscriptionIsRemoved(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    let other = try await fixture.anotherDevice()
    let mine = try await fixture.subscribe(1, ["a", "b"])
    let others = try await fixture.subscribe(2, of: other.serial)
    let kept = try await fixture.subscribe(3)
    let numbers = try #require(
        try await fixture.update("a", firing: [[fixture.target(mine), fixture.target(kept)]]))
    #expect(try await fixture.fire(1, mine, by: numbers[0]) == .stored(replaced: nil))
    #expect(try await fixture.fire(2, kept, by: numbers[0]) == .stored(replaced: nil))
    _ = try await store.endSubscriptions([mine.serial], of: device)
    _ = try await store.endSubscriptions([others.serial], of: other.serial)
    let ended = EndedSubscription(serial: mine.serial, device: device)
    #expect(try await store.endedSubscriptions(of: device, limit: 9) == [ended])
    #expect(try await store.endedSubscriptions(of: nil, limit: 9).count == 2)
    #expect(try await store.endedSubscriptions(of: nil, limit: 1).count == 1)
    #expect(try await fixture.fire(3, mine, by: numbers[0] + 1) == .originGone)
    #expect(try await Set(store.serials(of: device)) == Set([mine.serial, kept.serial]), "it is not removed yet")
    try await store.removeSubscriptions([ended], at: start)
    try await store.removeSubscriptions([ended], at: start)
    #expect(try await fixture.base.waiting().map(\.position) == [2])
    #expect(try await store.endedSubscriptions(of: device, limit: 9).isEmpty)
    #expect(try await store.serials(of: device) == [kept.serial])
    #expect(try await store.endedSubscriptions(of: nil, limit: 9).map(\.serial) == [others.serial])
}

private func subscribersAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let other = try await fixture.anotherDevice()
    let first = try await fixture.subscribe(1, ["b", "a"])
    let second = try await fixture.subscribe(2, ["a"], of: other.serial)
    let ended = try await fixture.subscribe(3, ["a", "é"])
    _ = try await store.endSubscriptions([ended.serial], of: fixture.device)
    try await store.removeSubscriptions([EndedSubscription(serial: ended.serial, device: fixture.device)], at: start)
    let late = try await fixture.subscribe(4, ["a", "c"])
    _ = try await store.endSubscriptions([late.serial], of: fixture.device)
    func names(after name: String, limit: Int) async throws -> [String] {
        try await store.subscribedItems(of: fixture.app, after: name, limit: limit).map(\.text)
    }
    #expect(try await names(after: "", limit: 2) == ["a", "b"])
    #expect(try await names(after: "a", limit: 1) == ["b"])
    #expect(try await !names(after: "", limit: 9).contains("é"))
    let nobody = AppSerial(fixture.app.rawValue + 1)
    #expect(try await store.subscribedItems(of: nobody, after: "", limit: 9).isEmpty)
    func subscribers(_ item: String, after place: SubscriptionSerial = .init(0), limit: Int = 9) async throws
        -> [ItemSubscriber]
    {
        try await store.subscribers(of: fixture.item(item), after: place, limit: limit)
    }
    let expected = [
        ItemSubscriber(first.serial, items: first.definition.items),
        ItemSubscriber(second.serial, items: second.definition.items),
    ]
    #expect(try await subscribers("a") == expected)
    #expect(try await subscribers("a", limit: 1) == [expected[0]])
    #expect(try await subscribers("a", after: first.serial) == [expected[1]])
    #expect(try await subscribers("b") == [expected[0]])
    #expect(try await subscribers("none").isEmpty)
}
