import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = SubscriptionFixture.start

extension StoreCase {
    static let firings: [StoreCase] = [
        StoreCase("firings of an item are delivered in the order of their numbers", firingsAreInOrder),
        StoreCase("no firing appears behind one that was read, with any concurrent commits", numbersOfFiringsAscend),
        StoreCase("an unreadable firing delays no other", damagedFiringIsSkipped),
        StoreCase("a subscription fires once for each firing, and never for an earlier one", firesOnceForEach),
        StoreCase("firings of one commit count one after the other", firingsOfOneCommitFollowEachOther),
        StoreCase("of concurrent firings of a single-use subscription one counts", singleUseFiresOnce),
        StoreCase("a firing that was found with another revision does not count", revisionMustBePresent),
        StoreCase("a cool-down ends at its moment", coolDownEnds),
        StoreCase("a refused crossing counts as one that never fired", refusedCrossingIsNoted),
        StoreCase("a refusal is not stored for a subscription that changed or fired since", refusalIsLate),
    ]
}

private func firingsAreInOrder(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let targets = [try await fixture.subscribe(1), try await fixture.subscribe(2)].map(fixture.target)
    #expect(try await store.nextFiring(of: fixture.item("a")) == nil)
    let first = try #require(try await fixture.update("a", version: 1, firing: [targets, [targets[0]]]))
    #expect(first.count == 2 && first[0] < first[1])
    let second = try #require(try await fixture.update("b", version: 5, firing: [[targets[1]]]))
    #expect(!first.contains(second[0]))
    #expect(try await Set(store.firingNumbers(of: fixture.item("a"))) == Set(first))
    #expect(try await store.firingTargets(of: fixture.item("a")) == Set(targets.map(\.subscription)))
    let keys = [try fixture.item("a"), try fixture.item("b")]
    #expect(try await store.itemsWithFirings(after: nil, limit: 9) == keys)
    #expect(try await store.itemsWithFirings(after: nil, limit: 1) == [keys[0]])
    #expect(try await store.itemsWithFirings(after: keys[0], limit: 9) == [keys[1]])
    guard case .readable(let next)? = try await store.nextFiring(of: keys[0]) else { throw StoreFixture.Missing() }
    #expect(next.number == first[0] && next.done == 0 && next.firing.targets == targets)
    #expect(next.firing.item == keys[0].name && next.firing.app == fixture.app)
    #expect(next.firing.state.fields.mapValues(\.text) == ["price": "1"] && next.firing.state.updatedAt == start)
    try await store.advance(first[0], to: 1, refused: [])
    guard case .readable(let part)? = try await store.nextFiring(of: keys[0]) else { throw StoreFixture.Missing() }
    #expect(part.number == first[0] && part.done == 1)
    try await store.advance(first[1], to: nil, refused: [])
    #expect(try await store.firingTargets(of: keys[0]) == [targets[1].subscription], "the first was delivered")
    try await store.advance(first[0], to: nil, refused: [])
    try await store.advance(first[0], to: nil, refused: [])
    try await store.advance(first[0], to: 1, refused: [])
    #expect(try await store.nextFiring(of: keys[0]) == nil)
    #expect(try await store.itemsWithFirings(after: nil, limit: 9) == [keys[1]])
}

private func numbersOfFiringsAscend(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, key) = (fixture.store, try fixture.item("a"))
    let target = fixture.target(try await fixture.subscribe(1))
    try await withThrowingTaskGroup(of: Void.self) { group in
        for version in Int64(1)...100 {
            group.addTask { _ = try await fixture.update("a", version: version, firing: [[target], [target]]) }
        }
        var known: Set<Int64> = []
        for _ in 0..<100 {
            let new = Set(try await store.firingNumbers(of: key)).subtracting(known)
            #expect(new.min() ?? .max > known.max() ?? .min)
            #expect(new.count % 2 == 0, "both firings of a commit, or none")
            known.formUnion(new)
        }
        try await group.waitForAll()
    }
    #expect(try await Set(store.firingNumbers(of: key)).count == 200)
}

private func damagedFiringIsSkipped(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, key) = (fixture.store, try fixture.item("a"))
    let target = fixture.target(try await fixture.subscribe(1))
    let numbers = try #require(try await fixture.update("a", firing: [[target], [target]]))
    try await stores.damageFiring(numbers[0], in: store)
    guard case .unreadable(let number)? = try await store.nextFiring(of: key) else { throw StoreFixture.Missing() }
    #expect(number == numbers[0])
    #expect(try await store.firingTargets(of: key) == [target.subscription])
    try await store.advance(number, to: nil, refused: [])
    guard case .readable(let next)? = try await store.nextFiring(of: key) else { throw StoreFixture.Missing() }
    #expect(next.number == numbers[1])
}

private func firesOnceForEach(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let made = try await fixture.subscribe(1, ["a", "b"])
    let target = fixture.target(made)
    let first = try #require(try await fixture.update("a", version: 1, firing: [[target], [target]]))
    #expect(try await fixture.fire(1, made, by: first[1]) == .stored(replaced: nil))
    #expect(try await fixture.fire(2, made, by: first[1]) == .originGone, "once")
    #expect(try await fixture.fire(3, made, by: first[0]) == .originGone, "a later one was delivered")
    let second = try #require(try await fixture.update("b", version: 1, firing: [[target]]))
    #expect(try await fixture.fire(4, made, on: "c", by: second[0]) == .originGone, "it does not watch that item")
    #expect(try await fixture.fire(5, made, on: "b", by: second[0]) == .stored(replaced: nil))
    #expect(try await fixture.base.waiting().map(\.position) == [1, 5])
    let last = try #require(try await fixture.update("a", version: 2, firing: [[target]]))
    let results = try await concurrently(6) { try await fixture.fire(Int64(100 + $0), made, by: last[0]) }
    #expect(results.filter { $0 == .stored(replaced: nil) }.count == 1)
    #expect(results.filter { $0 == .originGone }.count == 5)
}

private func firingsOfOneCommitFollowEachOther(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let often = try await fixture.subscribe(1, ["a", "b"])
    let once = try await fixture.subscribe(fixture.request(2, SubscriptionFixture.definition(["a", "b"], policy: .once)))
    let targets = [often, once].map(fixture.target)
    let numbers = try #require(try await fixture.update("a", version: 1, firing: [targets, targets]))
    let others = try #require(try await fixture.update("b", version: 1, firing: [targets]))
    let (item, other) = (try fixture.item("a").name, try fixture.item("b").name)
    let operations = [
        fixture.notified(1, often, .fired(targets[0], on: item, by: numbers[0], at: start)),
        fixture.notified(2, often, .fired(targets[0], on: other, by: others[0], at: start)),
        fixture.notified(3, often, .fired(targets[0], on: item, by: numbers[1], at: start)),
        fixture.notified(4, once, .fired(targets[1], on: item, by: numbers[0], at: start)),
    ]
    #expect(try await fixture.store.commit(operations) == Array(repeating: .stored(replaced: nil), count: 4))
    #expect(try await fixture.store.subscription(once.id, of: fixture.device)?.machine.status == .triggered)
    let later = try await fixture.subscribe(fixture.request(3, SubscriptionFixture.definition(["a", "b"], policy: .once)))
    let target = fixture.target(later)
    let both = [
        fixture.notified(5, later, .fired(target, on: item, by: numbers[1], at: start)),
        fixture.notified(6, later, .fired(target, on: other, by: others[0], at: start)),
    ]
    #expect(try await fixture.store.commit(both) == [.stored(replaced: nil), .originGone])
    #expect(try await fixture.base.waiting().map(\.position) == [1, 2, 3, 4, 5])
}

private func singleUseFiresOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let made = try await fixture.subscribe(
        fixture.request(1, SubscriptionFixture.definition(["a", "b", "c"], policy: .once)))
    let target = fixture.target(made)
    var numbers: [String: Int64] = [:]
    for item in ["a", "b", "c"] {
        numbers[item] = try #require(try await fixture.update(item, firing: [[target]])).first
    }
    let found = numbers
    let results = try await concurrently(3) { number in
        let item = ["a", "b", "c"][Int(number) - 1]
        return try await fixture.fire(Int64(number), made, on: item, by: found[item] ?? 0)
    }
    #expect(results.filter { $0 == .stored(replaced: nil) }.count == 1)
    #expect(try await fixture.base.waiting().count == 1)
    let fired = try #require(try await fixture.store.subscription(made.id, of: fixture.device))
    #expect(fired.machine.status == .triggered && fired.machine.statusAt == start)
}

private func revisionMustBePresent(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let made = try await fixture.subscribe(1)
    let numbers = try #require(try await fixture.update("a", firing: [[fixture.target(made)]]))
    let request = fixture.request(2, made.definition, changing: made.id)
    guard case .changed(let changed) = try await fixture.put(request) else { throw StoreFixture.Missing() }
    #expect(try await fixture.fire(1, made, by: numbers[0]) == .originGone)
    #expect(try await fixture.fire(2, changed, by: numbers[0]) == .stored(replaced: nil))
}

private func coolDownEnds(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let made = try await fixture.subscribe(
        fixture.request(1, SubscriptionFixture.definition(policy: .every(coolDownSeconds: 10))))
    let target = fixture.target(made)
    let numbers = try #require(try await fixture.update("a", firing: [[target], [target], [target]]))
    let end = start.adding(seconds: 10)
    #expect(try await fixture.fire(1, made, by: numbers[0], at: start) == .stored(replaced: nil))
    #expect(try await fixture.fire(2, made, by: numbers[1], at: end.adding(milliseconds: -1)) == .originGone)
    #expect(try await fixture.fire(3, made, by: numbers[2], at: end) == .stored(replaced: nil))
    #expect(try await fixture.store.subscription(made.id, of: fixture.device)?.machine.lastFiredAt == end)
}

/// Returns that a condition is true on each of some items after an update.
private func holding(_ items: [String], version: Int64, in fixture: SubscriptionFixture) throws -> [FoundCondition] {
    try items.map { FoundCondition(item: try fixture.item($0).name, version: version, holds: true) }
}

private func refusedCrossingIsNoted(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, key) = (fixture.store, try fixture.item("a"))
    for item in ["a", "b"] { try await fixture.update(item) }
    let found = try holding(["a", "b"], version: 1, in: fixture)
    let definition = try SubscriptionFixture.definition(["a", "b"], policy: .everyCrossing)
    let made = try await fixture.subscribe(fixture.request(1, definition, found: found))
    let target = fixture.target(made)
    for (position, item) in zip(Int64(1)..., ["a", "b"]) {
        let notified = try #require(try await fixture.update(item, version: 2, firing: [[target]]))
        #expect(try await fixture.fire(position, made, on: item, by: notified[0]) == .stored(replaced: nil))
        try await store.advance(notified[0], to: nil, refused: [])
    }
    let refused = try #require(try await fixture.update("a", version: 3, firing: [[target, target]]))
    #expect(try await store.itemsNeverFired(after: .start, limit: 9).items.isEmpty)
    try await store.advance(refused[0], to: 1, refused: [target])
    let armed = try await store.armed([made.serial]).sorted { $0.item.name.text < $1.item.name.text }
    #expect(armed.map(\.hasFired) == [false, true], "the other item is as it was")
    #expect(armed.map(\.held) == [false, true] && armed.map(\.since) == [1, 1])
    #expect(try await store.itemsNeverFired(after: .start, limit: 9).items == [key])
    #expect(try await fixture.fire(101, made, by: refused[0]) == .originGone, "it was refused")
    try await store.advance(refused[0], to: nil, refused: [])
    let later = try #require(try await fixture.update("a", version: 4, firing: [[target]]))
    #expect(try await fixture.fire(102, made, by: later[0]) == .stored(replaced: nil))
    try await store.advance(refused[0], to: nil, refused: [target])
    #expect(try await fixture.armed(on: "a").map(\.hasFired) == [true], "the firing is removed")
}

private func refusalIsLate(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    try await fixture.update("a")
    let found = try holding(["a"], version: 1, in: fixture)
    let crossing = try SubscriptionFixture.definition(policy: .everyCrossing)
    let (changed, fired) = (
        try await fixture.subscribe(fixture.request(1, crossing, found: found)),
        try await fixture.subscribe(fixture.request(2, crossing, found: found))
    )
    let often = try await fixture.subscribe(fixture.request(3, SubscriptionFixture.definition(), found: found))
    let ended = try await fixture.subscribe(fixture.request(4, crossing, found: found))
    let targets = [changed, fired, often, ended].map(fixture.target)
    let numbers = try #require(try await fixture.update("a", version: 2, firing: [targets, [targets[1]]]))
    let change = fixture.request(
        5, crossing, changing: changed.id, found: try holding(["a"], version: 2, in: fixture))
    guard case .changed = try await fixture.put(change) else { throw StoreFixture.Missing() }
    #expect(try await fixture.fire(1, fired, by: numbers[1]) == .stored(replaced: nil))
    _ = try await store.endSubscriptions([ended.serial], of: fixture.device)
    try await store.advance(numbers[0], to: nil, refused: targets)
    let rows = try await store.armed([changed, fired, often, ended].map(\.serial))
    #expect(rows.map(\.held) == [true, true, true, true])
    #expect(rows.map(\.hasFired) == [false, true, false, false])
    #expect(try await store.firingNumbers(of: fixture.item("a")) == [numbers[1]])
}
