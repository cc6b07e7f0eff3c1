import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = SubscriptionFixture.start
private let pace = FiringPace(maxFrequency: 1)

extension StoreCase {
    static let throttledFirings: [StoreCase] = [
        StoreCase("a firing waits for its pace and is due at its moment", firingWaitsForItsPace),
        StoreCase("a buffer keeps the newest firings", bufferKeepsTheNewest),
        StoreCase("a firing that does not count is not throttled", lateFiringIsNotHeld),
        StoreCase("throttled firings of a device do not exceed their number", heldFiringsAreLimited),
        StoreCase("throttled firings of a device do not exceed their bytes", heldBytesAreLimited),
        StoreCase("of concurrent deliveries of a throttled firing one counts", heldFiringIsToldOnce),
        StoreCase("a clock that was set back does not make firings wait longer", heldFiringsAreBroughtBack),
        StoreCase("behind a dropped firing the next is due", droppedFiringLetsTheNextGoOn),
    ]
}

/// A subscription that fired for its item at the start, with numbers of further firings of the item.
private struct Notified {
    let fixture: SubscriptionFixture
    let subscription: Subscription
    let numbers: [Int64]

    init(_ fixture: SubscriptionFixture, _ number: UInt64 = 1, item: String = "a", firings: Int = 5) async throws {
        self.fixture = fixture
        subscription = try await fixture.subscribe(
            fixture.request(number, SubscriptionFixture.definition([item], pace: pace)))
        let targets = Array(repeating: [fixture.target(subscription)], count: firings + 1)
        let all = try #require(try await fixture.update(item, firing: targets))
        let result = try await fixture.fire(Int64(number), subscription, on: item, by: all[0])
        #expect(result == .stored(replaced: nil))
        numbers = Array(all.dropFirst())
    }

    func notify(_ position: Int64, _ held: Int64, at now: Timestamp) async throws -> InboxResult {
        let operation = fixture.notified(position, subscription, .throttledNotified(held, at: now), at: now)
        return try await fixture.store.commit([operation])[0]
    }
}

private func firingWaitsForItsPace(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    #expect(try await store.nextThrottledFiring() == nil)
    let (notified, other) = (try await Notified(fixture), try await Notified(fixture, 2, item: "b"))
    let due = start.adding(seconds: 1)
    let firing = try fixture.held(notified.subscription, by: notified.numbers[0], body: [7, 8])
    #expect(try await store.throttle([firing], at: start.adding(milliseconds: 1)) == [.throttled(insteadOf: 0)])
    #expect(try await store.nextThrottledFiring() == due)
    #expect(try await store.dueFirings(at: due.adding(milliseconds: -1), limit: 9).isEmpty)
    let found = try #require(try await store.dueFirings(at: due, limit: 9).first)
    #expect(found.body == [7, 8] && found.ttl == 60 && found.isAlwaysPushed && !found.isDistinct)
    #expect(found.device == fixture.device && found.app == fixture.app && found.origin == notified.subscription.origin)
    #expect(try await store.dueFirings(at: due, limit: 0).isEmpty)
    #expect(try await notified.notify(101, found.number, at: due) == .stored(replaced: nil))
    #expect(try await notified.notify(102, found.number, at: due) == .originGone, "once")
    #expect(try await store.nextThrottledFiring() == nil)
    // Its pace begins anew.
    let next = try fixture.held(notified.subscription, by: notified.numbers[1])
    #expect(try await store.throttle([next], at: due.adding(milliseconds: 999)) == [.throttled(insteadOf: 0)])
    #expect(try await store.nextThrottledFiring() == due.adding(seconds: 1))
    let free = try fixture.held(other.subscription, on: "b", by: other.numbers[0])
    #expect(try await store.throttle([free], at: start.adding(seconds: 1)) == [.due])
}

private func bufferKeepsTheNewest(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let notified = try await Notified(fixture)
    let firings = try (0..<4).map {
        try fixture.held(notified.subscription, by: notified.numbers[$0], body: [UInt8($0)], buffer: 2)
    }
    let results = try await store.throttle(firings, at: start)
    #expect(
        results == [.throttled(insteadOf: 0), .throttled(insteadOf: 0), .throttled(insteadOf: 1), .throttled(insteadOf: 1)])
    var (now, bodies) = (start, [[UInt8]]())
    for position in Int64(101)...102 {
        now = now.adding(seconds: 1)
        let due = try await store.dueFirings(at: now, limit: 9)
        #expect(due.count == 1, "the next waits for its pace")
        bodies += due.map(\.body)
        let number = try #require(due.first).number
        #expect(try await notified.notify(position, number, at: now) == .stored(replaced: nil))
    }
    #expect(bodies == [[2], [3]])
    #expect(try await store.nextThrottledFiring() == nil)
}

private func lateFiringIsNotHeld(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let notified = try await Notified(fixture)
    let firings = try [1, 0, 1].map { try fixture.held(notified.subscription, by: notified.numbers[$0], buffer: 9) }
    #expect(try await store.throttle(firings, at: start) == [.throttled(insteadOf: 0), .late, .late], "later ones only")
    try await fixture.suspend(fixture.device)
    let suspended = try fixture.held(notified.subscription, by: notified.numbers[2])
    #expect(try await store.throttle([suspended], at: start) == [.late])
    let due = try #require(try await store.dueFirings(at: start.adding(seconds: 1), limit: 9).first)
    #expect(
        try await notified.notify(101, due.number, at: start.adding(seconds: 1)) == .originGone, "the device is suspended")
    try await fixture.resume(fixture.device)
    #expect(try await notified.notify(102, due.number, at: start.adding(seconds: 1)) == .originGone, "it was changed since")
    #expect(try await fixture.base.waiting().count == 1)
    _ = try await store.endSubscriptions([notified.subscription.serial], of: fixture.device)
    let current = try fixture.held(notified.subscription, by: notified.numbers[3])
    #expect(try await store.throttle([current], at: start) == [.late])
}

private func heldFiringsAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let buffer = FiringPace.largestBuffer
    let count = SubscriptionLimits.throttledFirings / buffer
    var all: [(notified: Notified, item: String)] = []
    for number in 1...count + 1 {
        let item = "item \(number)"
        all.append((try await Notified(fixture, UInt64(number), item: item, firings: buffer), item))
    }
    for (notified, item) in all.dropLast() {
        let firings = try notified.numbers.map {
            try fixture.held(notified.subscription, on: item, by: $0, buffer: buffer)
        }
        let results = try await store.throttle(firings, at: start)
        #expect(results == Array(repeating: .throttled(insteadOf: 0), count: buffer))
    }
    let last = try #require(all.last)
    let more = try last.notified.numbers.prefix(2).map {
        try fixture.held(last.notified.subscription, on: last.item, by: $0, buffer: buffer)
    }
    #expect(try await store.throttle([more[0]], at: start) == [.full])
    let due = try #require(try await store.dueFirings(at: start.adding(seconds: 1), limit: 1).first)
    try await store.dropThrottled([due.number], at: start)
    #expect(try await store.throttle(more, at: start) == [.throttled(insteadOf: 0), .throttled(insteadOf: 1)])
}

private func heldBytesAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let half = Array(repeating: UInt8(1), count: SubscriptionLimits.throttledBytes / 2)
    let (first, second) = (try await Notified(fixture, 1, item: "a"), try await Notified(fixture, 2, item: "b"))
    func throttle(_ notified: Notified, _ item: String, _ number: Int, _ body: [UInt8]) async throws -> [ThrottleResult] {
        let firing = try fixture.held(notified.subscription, on: item, by: notified.numbers[number], body: body, buffer: 9)
        return try await store.throttle([firing], at: start)
    }
    #expect(try await throttle(first, "a", 0, half) == [.throttled(insteadOf: 0)])
    #expect(try await throttle(second, "b", 0, half + [1]) == [.full])
    #expect(try await throttle(second, "b", 1, half) == [.throttled(insteadOf: 0)], "as much as fits")
    #expect(try await throttle(second, "b", 2, [1]) == [.throttled(insteadOf: 1)], "its own firing makes space")
}

private func heldFiringIsToldOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let notified = try await Notified(fixture)
    let firing = try fixture.held(notified.subscription, by: notified.numbers[0])
    #expect(try await fixture.store.throttle([firing], at: start) == [.throttled(insteadOf: 0)])
    let due = start.adding(seconds: 1)
    let number = try #require(try await fixture.store.dueFirings(at: due, limit: 1).first).number
    let results = try await concurrently(5) { try await notified.notify(Int64(100 + $0), number, at: due) }
    #expect(results.filter { $0 == .stored(replaced: nil) }.count == 1)
    #expect(results.filter { $0 == .originGone }.count == 4)
}

private func heldFiringsAreBroughtBack(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let notified = try await Notified(fixture)
    let firing = try fixture.held(notified.subscription, by: notified.numbers[0])
    #expect(try await store.throttle([firing], at: start) == [.throttled(insteadOf: 0)])
    try await store.bringBackThrottled(at: start)
    #expect(try await store.nextThrottledFiring() == start.adding(seconds: 1), "it waits no longer than its pace")
    let before = start.adding(seconds: -60)
    try await store.bringBackThrottled(at: before)
    #expect(try await store.nextThrottledFiring() == before.adding(seconds: 1))
}

private func droppedFiringLetsTheNextGoOn(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let store = fixture.store
    let notified = try await Notified(fixture)
    let firings = try (0..<2).map {
        try fixture.held(notified.subscription, by: notified.numbers[$0], body: [UInt8($0)], buffer: 9)
    }
    #expect(try await store.throttle(firings, at: start) == [.throttled(insteadOf: 0), .throttled(insteadOf: 0)])
    let first = try #require(try await store.dueFirings(at: start.adding(seconds: 1), limit: 9).first)
    let now = start.adding(milliseconds: 5)
    try await store.dropThrottled([first.number], at: now)
    try await store.dropThrottled([first.number], at: now.adding(seconds: 9))
    #expect(try await store.nextThrottledFiring() == now)
    #expect(try await store.dueFirings(at: now, limit: 9).map(\.body) == [[1]])
}
