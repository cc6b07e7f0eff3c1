import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let clock: [StoreCase] = [
        StoreCase(
            "after a clock that was ahead, each call waits as long from now on as it was to wait from then on",
            afterAClockThatWasAhead),
        StoreCase("after a clock that was right, calls and leases do not change", clockThatWasRightIsLeftAlone),
        StoreCase(
            "overdue pings are distributed over the time of a first ping, and stay due",
            overduePingsAreSpread),
    ]
}

private func afterAClockThatWasAhead(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request(gone: "http://example.com/gone"))
    _ = try await fixture.put(
        fixture.request(on: fixture.base.second, ping: "http://two.example", due: start.adding(seconds: 40)))
    let ahead = start.adding(seconds: 86_400)
    let calls = try await fixture.lease(at: ahead)
    #expect(calls.count == 2)
    var record = try fixture.record(calls[0], due: ahead.adding(seconds: 60), at: ahead)
    record.end.peerRestsUntil = ahead.adding(seconds: 10)
    #expect(try await fixture.store.record(record))
    let now = start.adding(seconds: 100)
    try await fixture.store.bringBackWork(at: now)
    #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.dueAt == now.adding(seconds: 60))
    // The other one was leased, and is due again; its own time was set by a clock that was right.
    #expect(try await fixture.store.watch(of: fixture.base.second.serial)?.dueAt == start.adding(seconds: 40))
    #expect(try await fixture.due(at: now).map(\.peer) == ["two.example:80"])
    #expect(try await fixture.due(at: now).allSatisfy { $0.servedAt <= now })
    let later = now.adding(seconds: 60)
    #expect(try await fixture.due(at: later.adding(milliseconds: -1)).count == 1)
    #expect(try await fixture.due(at: later).count == 2)
}

private func clockThatWasRightIsLeftAlone(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(
        fixture.request(on: fixture.base.second, ping: "http://two.example", due: WatchFixture.aMonth))
    #expect(try await fixture.lease(at: start).count == 1)
    try await fixture.store.bringBackWork(at: start)
    #expect(try await fixture.due(at: start.adding(milliseconds: 29_999)).isEmpty)
    #expect(try await fixture.due(at: start.adding(seconds: 30)).count == 1)
    #expect(try await fixture.store.watch(of: fixture.base.second.serial)?.dueAt == WatchFixture.aMonth)
}

private func overduePingsAreSpread(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request(every: 60))
    _ = try await fixture.put(
        fixture.request(on: fixture.base.second, ping: "http://other.example", due: WatchFixture.aMonth))
    let now = start.adding(seconds: 86_400)
    try await fixture.store.spreadOverduePings(at: now)
    let due = try #require(try await fixture.store.watch(of: fixture.base.first.serial)?.dueAt)
    #expect((now..<now.adding(seconds: 60)).contains(due))
    #expect(try await fixture.store.watch(of: fixture.base.second.serial)?.dueAt == WatchFixture.aMonth)
    #expect(try await fixture.lease(at: due).count == 1)
}
