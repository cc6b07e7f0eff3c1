import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = SubscriptionFixture.start

extension StoreCase {
    static let subscriptions: [StoreCase] = [
        StoreCase("a subscription is stored as it was created, and is found by its device alone", subscriptionIsKept),
        StoreCase("a key of a device belongs to one subscription", keyBelongsToOne),
        StoreCase("concurrent requests with one key make one subscription", oneKeyMakesOne),
        StoreCase("a change arms a subscription and has a new revision", changeArms),
        StoreCase("of concurrent changes of one revision one is made", oneChangeOfARevision),
        StoreCase("concurrent subscriptions do not exceed the limits of their device and app", subscriptionsAreLimited),
        StoreCase("a device that is suspended, deleted or unknown gets no subscription", deviceMustBeRegistered),
        StoreCase("changed rules allow no subscription", otherRulesAllowNone),
        StoreCase("a new subscription belongs to the present user of its device", subscriptionBelongsToUser),
        StoreCase("subscriptions are listed by status, key, identifier and tag", subscriptionsAreListed),
    ]
}

private func subscriptionIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    var definition = try SubscriptionFixture.definition(
        ["b", "a", "ü"], policy: .every(coolDownSeconds: 9), pace: FiringPace(maxFrequency: 0.25, bufferSize: 3),
        key: "orders", tags: ["x", "y"], expiresAt: start.adding(seconds: 50))
    definition.mode = .distinct
    definition.trigger = "fields.price > 5"
    let made = try await fixture.subscribe(fixture.request(1, definition))
    #expect(made.id == fixture.request(1, definition).proposed && made.device == fixture.device && made.app == fixture.app)
    #expect(made.definition == definition && made.user == nil && made.createdAt == start)
    #expect(made.machine == SubscriptionMachine(.every(coolDownSeconds: 9), at: start))
    #expect(try await fixture.store.subscription(made.id, of: fixture.device) == made)
    #expect(try await fixture.store.serials(of: fixture.device) == [made.serial])
    let other = try await fixture.anotherDevice()
    #expect(try await fixture.store.subscription(made.id, of: other.serial) == nil)
    #expect(try await fixture.store.serials(of: other.serial).isEmpty)
    #expect(
        try await fixture.put(fixture.request(2, definition, of: other.serial, changing: made.id)) == .unknown,
        "it is another device's")
}

private func keyBelongsToOne(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    var definition = try SubscriptionFixture.definition(key: "k")
    let made = try await fixture.subscribe(fixture.request(1, definition))
    #expect(try await fixture.put(fixture.request(2, definition), at: start.adding(seconds: 1)) == .same(made))
    definition.tags = ["later"]
    guard case .changed(let changed) = try await fixture.put(fixture.request(3, definition)) else {
        throw StoreFixture.Missing()
    }
    #expect(changed.serial == made.serial && changed.id == made.id && changed.definition.tags == ["later"])
    #expect(changed.machine.revision == made.machine.revision + 1)
    let elsewhere = try SubscriptionFixture.definition(["b"], key: "k")
    #expect(try await fixture.put(fixture.request(4, elsewhere)) == .frozen(changed))
    #expect(try await fixture.store.subscription(made.id, of: fixture.device) == changed)
    // Another device has keys of its own, and an ended subscription frees its key.
    let other = try await fixture.anotherDevice()
    _ = try await fixture.subscribe(fixture.request(5, definition, of: other.serial))
    #expect(try await fixture.store.endSubscriptions(of: fixture.device, .init(key: "k")) == 1)
    let next = try await fixture.subscribe(fixture.request(6, elsewhere))
    #expect(next.serial > changed.serial)
}

private func oneKeyMakesOne(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let definition = try SubscriptionFixture.definition(key: "k")
    let puts = try await concurrently(8) { try await fixture.put(fixture.request($0, definition)) }
    var (made, same): ([Subscription], [Subscription]) = ([], [])
    for put in puts {
        switch put {
        case .made(let subscription): made.append(subscription)
        case .same(let subscription): same.append(subscription)
        default: Issue.record("\(put)")
        }
    }
    #expect(made.count == 1)
    #expect(same == Array(repeating: try #require(made.first), count: 7))
    #expect(try await fixture.store.serials(of: fixture.device) == made.map(\.serial))
}

private func changeArms(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    try await fixture.update("a", version: 2)
    let made = try await fixture.subscribe(fixture.request(1, SubscriptionFixture.definition(policy: .once)))
    let numbers = try #require(try await fixture.update("a", version: 3, firing: [[fixture.target(made)]]))
    #expect(try await fixture.fire(1, made, by: numbers[0]) == .stored(replaced: nil))
    let triggered = try #require(try await fixture.store.subscription(made.id, of: fixture.device))
    #expect(triggered.machine.status == .triggered && triggered.machine.lastFiredAt == start)
    #expect(try await fixture.armed(on: "a").isEmpty)
    let later = start.adding(seconds: 5)
    let request = fixture.request(2, made.definition, changing: made.id)
    guard case .changed(let armed) = try await fixture.put(request, at: later) else { throw StoreFixture.Missing() }
    #expect(armed.machine.status == .subscribed && armed.machine.statusAt == later)
    #expect(armed.machine.revision == made.machine.revision + 1)
    #expect(try await fixture.store.subscription(made.id, of: fixture.device) == armed)
    let watched = try await fixture.armed(on: "a")
    #expect(watched.map(\.target) == [fixture.target(armed)])
    #expect(watched.map(\.since) == [3] && watched.map(\.hasFired) == [false])
    let unknown = SubscriptionID(Bytes16(high: 8, low: 8))
    #expect(try await fixture.put(fixture.request(3, made.definition, changing: unknown)) == .unknown)
}

private func oneChangeOfARevision(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let made = try await fixture.subscribe(1)
    let puts = try await concurrently(8) { number in
        var definition = made.definition
        definition.tags = ["\(number)"]
        return try await fixture.put(
            fixture.request(10 + number, definition, changing: made.id, revision: made.machine.revision))
    }
    var changed: [Subscription] = []
    for put in puts {
        if case .changed(let subscription) = put { changed.append(subscription) } else { #expect(put == .overtaken) }
    }
    #expect(changed.count == 1)
    #expect(try await fixture.store.subscription(made.id, of: fixture.device) == changed.first)
}

private func subscriptionsAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let definition = try SubscriptionFixture.definition()
    let puts = try await concurrently(8) { try await fixture.put(fixture.request($0, definition, limit: 3)) }
    #expect(puts.filter { $0 == .tooMany }.count == 5)
    let serials = try await fixture.store.serials(of: fixture.device)
    #expect(serials.count == 3)
    #expect(try await fixture.store.endSubscriptions([serials[0]], of: fixture.device) == 1)
    _ = try await fixture.subscribe(fixture.request(20, definition, limit: 3))
    #expect(try await fixture.put(fixture.request(21, definition, limit: 3)) == .tooMany)
    let other = try await fixture.anotherDevice()
    _ = try await fixture.subscribe(fixture.request(22, definition, of: other.serial, limit: 3))
    try await stores.setSubscriptionCount(SubscriptionLimits.perApp - 1, in: fixture.store)
    let last = try await concurrently(5) {
        try await fixture.put(fixture.request(30 + $0, definition, of: other.serial))
    }
    #expect(last.filter { $0 == .tooMany }.count == 4)
}

private func deviceMustBeRegistered(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let definition = try SubscriptionFixture.definition(key: "k")
    let made = try await fixture.subscribe(fixture.request(1, definition))
    try await fixture.suspend(fixture.device)
    #expect(try await fixture.put(fixture.request(2, definition)) == .deviceSuspended)
    #expect(try await fixture.store.subscription(made.id, of: fixture.device)?.machine.isPaused == true)
    try await fixture.resume(fixture.device)
    _ = try await fixture.store.deleteDevice(fixture.device, at: start)
    #expect(try await fixture.put(fixture.request(3, definition)) == .deviceGone)
    #expect(try await fixture.store.subscription(made.id, of: fixture.device) == nil)
    let other = try await fixture.anotherDevice()
    #expect(try await fixture.store.deleteApp(try StoreFixture.appID, at: start))
    #expect(try await fixture.put(fixture.request(4, definition, of: other.serial)) == .deviceGone)
}

private func otherRulesAllowNone(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let definition = try SubscriptionFixture.definition()
    _ = try await fixture.subscribe(fixture.request(1, definition, rulesRevision: 0))
    let revision = try await fixture.setItemRules()
    #expect(try await fixture.put(fixture.request(2, definition, rulesRevision: 0)) == .rulesChanged)
    #expect(try await fixture.put(fixture.request(2, definition, rulesRevision: revision + 1)) == .rulesChanged)
    _ = try await fixture.subscribe(fixture.request(2, definition, rulesRevision: revision))
    _ = try await fixture.subscribe(fixture.request(3, definition))
}

private func subscriptionBelongsToUser(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let ada = try #require(UserID("ada"))
    #expect(try await fixture.store.user(of: fixture.device) == nil)
    try await fixture.sign(.signedIn(ada))
    #expect(try await fixture.store.user(of: fixture.device) == ada)
    let hers = try await fixture.subscribe(1)
    #expect(hers.user == ada)
    #expect(try await fixture.store.subscription(hers.id, of: fixture.device)?.user == ada)
    try await fixture.sign(.signedOut)
    #expect(try await fixture.store.user(of: fixture.device) == nil)
    #expect(try await fixture.store.user(of: DeviceSerial(fixture.device.rawValue + 99)) == nil)
    #expect(try await fixture.subscribe(2).user == nil)
}

private func subscriptionsAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    var all: [Subscription] = []
    for number in UInt64(1)...5 {
        let definition = try SubscriptionFixture.definition(
            policy: .once, key: "k\(number)", tags: number % 2 == 0 ? ["even", "x"] : ["odd"])
        all.append(try await fixture.subscribe(fixture.request(number, definition)))
    }
    let other = try await fixture.anotherDevice()
    _ = try await fixture.subscribe(9, of: other.serial)
    let numbers = try #require(try await fixture.update("a", firing: [[fixture.target(all[2])]]))
    #expect(try await fixture.fire(1, all[2], by: numbers[0]) == .stored(replaced: nil))
    func found(_ filter: SubscriptionFilter, after place: Int? = nil, limit: Int = 10) async throws -> [Int] {
        let after = place.map { all[$0].serial } ?? SubscriptionSerial(0)
        let page = try await fixture.store.subscriptions(of: fixture.device, filter, after: after, limit: limit)
        return page.compactMap { one in all.firstIndex { $0.id == one.id } }
    }
    #expect(try await found(.init()) == [0, 1, 2, 3, 4])
    #expect(try await found(.init(), after: 1, limit: 2) == [2, 3])
    #expect(try await found(.init(), limit: 0).isEmpty)
    #expect(try await found(.init(status: .triggered)) == [2])
    #expect(try await found(.init(status: .subscribed), limit: 3) == [0, 1, 3])
    #expect(try await found(.init(key: "k4")) == [3])
    #expect(try await found(.init(id: all[4].id)) == [4])
    #expect(try await found(.init(tag: "even")) == [1, 3])
    #expect(try await found(.init(tag: "odd"), after: 0, limit: 1) == [2])
    #expect(try await found(.init(key: "k4", tag: "odd")).isEmpty)
    #expect(try await fixture.store.endSubscriptions([all[1].serial], of: fixture.device) == 1)
    #expect(try await found(.init(tag: "even")) == [3])
}
