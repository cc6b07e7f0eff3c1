import CarillonBasics
import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = SubscriptionFixture.start

extension StoreCase {
    static let watching: [StoreCase] = [
        StoreCase("armed subscriptions on an item are read in order, with their conditions", armedAreRead),
        StoreCase("the state of a condition when a subscription was armed is known for that update alone", conditionHeld),
        StoreCase("subscriptions are read on all of their items, armed or not", armedOrNot),
        StoreCase("items with a firing to come are found in parts", itemsNeverFiredAreFound),
        StoreCase("items with a firing to come, or with firings, are found by their shards", itemsAreFoundByShards),
        StoreCase("a firing that was found before a suspension does not count after it", suspensionEndsFirings),
        StoreCase("a notification has the subscription and its reader, unless it does not count", subjectsAreRead),
    ]
}

private func armedAreRead(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let other = try await fixture.anotherDevice()
    let condition = WatchedCondition(shape: "price > $", source: "price > 5", constants: [1, 2])
    var definition = try SubscriptionFixture.definition(policy: .every(coolDownSeconds: 7))
    definition.trigger = "price > 5"
    let first = try await fixture.subscribe(fixture.request(1, definition, condition: condition))
    try await fixture.update("a", version: 3)
    let second = try await fixture.subscribe(
        fixture.request(2, SubscriptionFixture.definition(policy: .everyCrossing), of: other.serial, condition: condition))
    let third = try await fixture.subscribe(fixture.request(3, SubscriptionFixture.definition(policy: .once)))
    let armed = try await fixture.armed(on: "a")
    #expect(armed.map(\.target) == [first, second, third].map(fixture.target))
    #expect(armed.map(\.condition) == [condition, condition, nil])
    #expect(armed.map(\.since) == [0, 3, 3] && armed.map(\.isArmed) == [true, true, true])
    #expect(armed.map(\.policy) == [.every, .everyCrossing, .once])
    #expect(armed.map(\.coolDownSeconds) == [7, 0, 0] && armed.map(\.firedAt) == [nil, nil, nil])
    let owners = [fixture.device, other.serial, fixture.device].map { ConditionOwner(device: $0, user: nil) }
    #expect(armed.map(\.owner) == owners)
    let item = try fixture.item("a")
    let page = try await fixture.store.armed(on: item, after: first.serial, limit: 1)
    #expect(page.map(\.target.subscription) == [second.serial])
    let elsewhere = ItemKey(app: AppSerial(fixture.app.rawValue + 1), name: item.name)
    #expect(try await fixture.store.armed(on: elsewhere, after: SubscriptionSerial(0), limit: 9).isEmpty)
    try await fixture.suspend(other.serial)
    #expect(try await fixture.armed(on: "a").map(\.target) == [first, third].map(fixture.target))
    let numbers = try #require(try await fixture.update("a", version: 4, firing: [[fixture.target(first)]]))
    #expect(try await fixture.fire(1, first, by: numbers[0]) == .stored(replaced: nil))
    let fired = try #require(try await fixture.armed(on: "a").first)
    #expect(fired.hasFired && fired.firedAt == start)
}

private func conditionHeld(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let definition = try SubscriptionFixture.definition(["a", "b", "c"], policy: .everyCrossing)
    for item in ["a", "b"] { try await fixture.update(item, version: 2) }
    func found(_ item: String, _ version: Int64, holds: Bool) throws -> FoundCondition {
        FoundCondition(item: try fixture.item(item).name, version: version, holds: holds)
    }
    func held(_ subscription: Subscription) async throws -> [String: Bool?] {
        let armed = try await fixture.store.armed([subscription.serial])
        return Dictionary(uniqueKeysWithValues: armed.map { ($0.item.name.text, $0.held) })
    }
    let request = fixture.request(1, definition, found: [try found("a", 2, holds: true), try found("b", 1, holds: true)])
    let made = try await fixture.subscribe(request)
    #expect(try await held(made) == ["a": true, "b": nil, "c": false], "\"b\" has another update, \"c\" has none")
    let again = fixture.request(2, definition, changing: made.id, found: [try found("b", 2, holds: false)])
    guard case .changed(let changed) = try await fixture.put(again) else { throw StoreFixture.Missing() }
    #expect(try await held(changed) == ["a": nil, "b": false, "c": false])
}

private func armedOrNot(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let two = try await fixture.subscribe(fixture.request(1, SubscriptionFixture.definition(["b", "a"], policy: .once)))
    let one = try await fixture.subscribe(2)
    let numbers = try #require(try await fixture.update("a", firing: [[fixture.target(two)]]))
    #expect(try await fixture.fire(1, two, by: numbers[0]) == .stored(replaced: nil))
    let unknown = SubscriptionSerial(one.serial.rawValue + 99)
    let read = try await fixture.store.armed([two.serial, one.serial, unknown])
    #expect(read.count == 3)
    let items = Set(read.filter { $0.target.subscription == two.serial }.map(\.item))
    #expect(items == Set([try fixture.item("a"), try fixture.item("b")]))
    for row in read { #expect(row.isArmed == (row.target.subscription == one.serial)) }
    try await fixture.suspend(fixture.device)
    #expect(try await fixture.store.armed([one.serial]).map(\.isArmed) == [false])
}

private func itemsNeverFiredAreFound(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    _ = try await fixture.subscribe(1, ["a", "b", "c"])
    let fired = try await fixture.subscribe(2, ["d"])
    _ = try await fixture.subscribe(3, ["a"])
    for item in ["a", "c", "d"] { try await fixture.update(item) }
    let crossing = try SubscriptionFixture.definition(["e"], policy: .everyCrossing)
    try await fixture.update("e")
    let holds = FoundCondition(item: try fixture.item("e").name, version: 1, holds: true)
    _ = try await fixture.subscribe(fixture.request(4, crossing, found: [holds]))
    let numbers = try #require(try await fixture.update("d", version: 2, firing: [[fixture.target(fired)]]))
    #expect(try await fixture.fire(1, fired, on: "d", by: numbers[0]) == .stored(replaced: nil))
    for limit in [1, 2, 100] {
        var (found, place) = ([ItemKey](), WatchPlace?.some(.start))
        while let after = place {
            let part = try await fixture.store.itemsNeverFired(after: after, limit: limit)
            #expect(part.items.count <= limit)
            found += part.items
            place = part.end
        }
        // "b" has no value, "d" has fired, and the condition on "e" is true.
        #expect(Set(found) == Set([try fixture.item("a"), try fixture.item("c")]))
    }
}

private func itemsAreFoundByShards(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let names = ["a", "b", "c", "d"]
    let subscription = try await fixture.subscribe(1, names)
    for name in names { try await fixture.update(name) }
    let target = fixture.target(subscription)
    for name in names { try await fixture.update(name, version: 2, firing: [[target]]) }
    let keys = try names.map(fixture.item)
    let shards = keys.map { Shard(of: $0.app, item: $0.name.text) }
    try #require(Set(shards).count == names.count)
    let others = ShardSet(ShardSet.all.shards.filter { $0 != shards[1] && $0 != shards[2] })
    let expected: [(ShardSet, [ItemKey])] = [
        (ShardSet([shards[2]]), [keys[2]]), (ShardSet([shards[1], shards[2]]), [keys[1], keys[2]]),
        (others, [keys[0], keys[3]]), (.none, []), (.all, keys),
    ]
    for (set, items) in expected {
        #expect(try await fixture.store.itemsWithFirings(in: set, after: nil, limit: 9) == items)
        let first = try await fixture.store.itemsWithFirings(in: set, after: nil, limit: 1)
        #expect(first == Array(items.prefix(1)), "items of other shards take no place of the limit")
        let part = try await fixture.store.itemsNeverFired(in: set, after: .start, limit: 9)
        #expect(part.items == items && part.end == nil)
    }
}

private func said(_ locale: String?) -> DeviceProfile {
    var profile = DeviceProfile()
    profile.locale = locale
    return profile
}

private func suspensionEndsFirings(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let made = try await fixture.subscribe(1)
    let numbers = try #require(try await fixture.update("a", firing: [[fixture.target(made)]]))
    try await fixture.suspend(fixture.device)
    let paused = try #require(try await fixture.store.subscription(made.id, of: fixture.device))
    #expect(paused.machine.revision > made.machine.revision)
    #expect(try await fixture.fire(1, paused, by: numbers[0]) == .originGone, "the device is suspended")
    try await fixture.resume(fixture.device)
    #expect(try await fixture.fire(2, made, by: numbers[0]) == .originGone, "it was found before the suspension")
    let resumed = try #require(try await fixture.store.subscription(made.id, of: fixture.device))
    #expect(try await fixture.fire(3, resumed, by: numbers[0]) == .stored(replaced: nil))
}

private func subjectsAreRead(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    var profile = said("de-AT")
    profile.timeZone = "Europe/Vienna"
    let device = try await fixture.anotherDevice(profile: profile)
    let definition = try SubscriptionFixture.definition(
        ["a", "b"], policy: .once, pace: FiringPace(maxFrequency: 2, bufferSize: nil), key: "k")
    let made = try await fixture.subscribe(fixture.request(1, definition, of: device.serial))
    let silent = try await fixture.subscribe(2)
    let ended = try await fixture.subscribe(3)
    _ = try await fixture.store.endSubscriptions([ended.serial], of: fixture.device)
    let unknown = SubscriptionSerial(ended.serial.rawValue + 99)
    let subjects = try await fixture.store.subjects([unknown, made.serial, ended.serial, silent.serial])
    #expect(subjects.map(\.serial) == [made.serial, silent.serial])
    let subject = try #require(subjects.first)
    #expect(subject.id == made.id && subject.device == device.serial && subject.app == fixture.app)
    #expect(subject.key == "k" && subject.fields == ["price"] && subject.items == 2)
    #expect(Array(subject.format.utf8) == definition.format.json.bytes)
    #expect(subject.policy == .once && subject.pace == definition.pace)
    #expect(subject.reader == Reader(locale: "de-AT", timeZone: "Europe/Vienna"))
    #expect(subjects.map(\.reader)[1] == Reader() && subjects[1].key == nil && subjects[1].pace == nil)
    let numbers = try #require(try await fixture.update("a", firing: [[fixture.target(made)]]))
    #expect(try await fixture.fire(1, made, by: numbers[0]) == .stored(replaced: nil))
    #expect(try await fixture.store.subjects([made.serial]).isEmpty, "it has fired once and for all")
    try await fixture.suspend(fixture.device)
    #expect(try await fixture.store.subjects([silent.serial]).isEmpty)
}
