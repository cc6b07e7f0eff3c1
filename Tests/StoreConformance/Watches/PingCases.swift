import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let pings: [StoreCase] = [
        StoreCase("a ping is due from its moment on, and leased once", pingIsDueFromItsMomentOn),
        StoreCase("a lease without an answer ends, and fences off its holder", leaseThatNobodyAnswersForEnds),
        StoreCase("of each peer the call is returned that has been due the longest", longestDueOfEachPeer),
        StoreCase("a watch that is put while it is called does not end the lease", watchThatIsPutWhileItIsCalled),
        StoreCase("work that was leased meanwhile is not leased again", whatWasLeasedMeanwhileIsNotLeasedAgain),
        StoreCase("a call is answered once", callIsAnsweredForOnce),
        StoreCase("the result of a ping is stored", whatAPingFoundIsKept),
        StoreCase(
            "the result of a ping belongs to its address, and the state of the channel does not",
            whatAPingFoundBelongsToItsAddress),
        StoreCase("no more calls are returned than requested, the longest overdue first", noMoreThanWasAskedFor),
    ]
}

private func pingIsDueFromItsMomentOn(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let due = start.adding(seconds: 10)
    _ = try await fixture.put(fixture.request(due: due))
    #expect(try await fixture.lease(at: due.adding(milliseconds: -1)).isEmpty)
    let calls = try await fixture.lease(at: due)
    #expect(calls.compactMap(\.watch).map(\.channel) == [fixture.base.first.serial])
    #expect(try await fixture.lease(at: due.adding(seconds: 29)).isEmpty)
}

private func leaseThatNobodyAnswersForEnds(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let lost = try #require(try await fixture.lease(at: start).first)
    let late = start.adding(seconds: 30)
    let again = try #require(try await fixture.lease(at: late).first)
    #expect(again.lease.work == lost.lease.work)
    #expect(again.lease.fence > lost.lease.fence)
    #expect(
        try await !fixture.store.record(fixture.record(lost, notified: .noConnection, due: late.adding(seconds: 60)))
    )
    #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.lastPing == nil)
    #expect(try await fixture.lease(at: late).isEmpty, "the present lease must stay valid")
    #expect(try await fixture.store.record(fixture.record(again, due: late.adding(seconds: 60))))
}

private func longestDueOfEachPeer(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let third = try await StoreFixture.open(3, of: fixture.base.device, in: fixture.store)
    _ = try await fixture.put(fixture.request(ping: "http://one.example/a", due: start))
    _ = try await fixture.put(
        fixture.request(on: fixture.base.second, ping: "https://ONE.example:80/b", due: start.adding(seconds: 1)))
    _ = try await fixture.put(
        fixture.request(on: third, ping: "http://one.example:81/", due: start.adding(seconds: 2)))
    let now = start.adding(seconds: 5)
    let due = try await fixture.due(at: now)
    #expect(due.map(\.peer) == ["one.example:80", "one.example:81"])
    #expect(due.map(\.host) == ["one.example", "one.example"])
    #expect(due.map(\.readyAt) == [start, start.adding(seconds: 2)])
    #expect(due.allSatisfy { $0.isOnTrial && $0.kind == .ping && $0.app == fixture.base.device.app })
    #expect(due.allSatisfy { $0.device == fixture.base.device.serial && $0.servedAt < start })
    let calls = try await fixture.lease(at: now)
    #expect(calls.compactMap(\.watch?.channel) == [fixture.base.first.serial, third.serial])
    let next = try await fixture.due(at: now)
    #expect(next.map(\.peer) == ["one.example:80"])
    #expect(next.map(\.servedAt) == [now])
}

private func watchThatIsPutWhileItIsCalled(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    _ = try await fixture.put(fixture.request(due: start))
    #expect(try await fixture.lease(at: start).isEmpty)
    _ = try await fixture.put(fixture.request(ping: "http://other.example", due: start))
    #expect(try await fixture.lease(at: start).isEmpty)
    // It was changed meanwhile: the result does not count, and it is pinged again.
    #expect(try await !fixture.store.record(fixture.record(call, notified: .noConnection, due: WatchFixture.aMonth)))
    let watch = try #require(try await fixture.store.watch(of: fixture.base.first.serial))
    #expect(watch.machine.notified == nil)
    #expect(watch.dueAt == start)
    #expect(try await fixture.lease(at: start).map(\.due.peer) == ["other.example:80"])
}

private func whatWasLeasedMeanwhileIsNotLeasedAgain(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(fixture.request(on: fixture.base.second, ping: "http://two.example"))
    let due = try await fixture.due(at: start)
    #expect(due.count == 2)
    let end = start.adding(seconds: 30)
    #expect(try await fixture.store.leaseWork([due[0]], at: start, until: end).items.map(\.due) == [due[0]])
    #expect(try await fixture.store.removeWatch(of: fixture.base.second.serial))
    #expect(
        try await fixture.store.leaseWork(due, at: start, until: end) == LeasedItems<WatchSubject>(items: [], unreadable: 0))
}

private func callIsAnsweredForOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    let record = try fixture.record(call, notified: .noConnection, due: start.adding(seconds: 60))
    #expect(try await fixture.notify(fixture.news(1, .pingFailed(.noConnection)), .pinged(record)) != .originGone)
    // The first answer of the store was lost: the second one is no second envelope.
    #expect(try await fixture.notify(fixture.news(2, .pingFailed(.noConnection)), .pinged(record)) == .originGone)
    #expect(try await fixture.base.waiting().map(\.position) == [1])
    #expect(try await !fixture.store.record(record))
}

private func whatAPingFoundIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    let due = start.adding(seconds: 60)
    #expect(try await fixture.store.record(fixture.record(call, notified: .tokenLost, due: due, code: .tokenLost)))
    let watch = try #require(try await fixture.store.watch(of: fixture.base.first.serial))
    #expect(watch.machine.notified == .tokenLost)
    #expect(watch.lastPing == Watch.LastPing(at: start, failure: .tokenLost, detail: "code 605"))
    #expect(watch.dueAt == due)
    #expect(try await fixture.lease(at: due.adding(milliseconds: -1)).isEmpty)
    #expect(try await fixture.lease(at: due).count == 1)
}

private func whatAPingFoundBelongsToItsAddress(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    _ = try await fixture.store.record(
        fixture.record(call, notified: .tokenLost, due: start.adding(seconds: 60), code: .tokenLost))
    let same = try await fixture.put(fixture.request(every: 90)).watch
    #expect(same.lastPing?.failure == .tokenLost)
    let other = try await fixture.put(fixture.request(ping: "http://other.example")).watch
    #expect(other.lastPing == nil)
    #expect(other.machine.notified == .tokenLost)
}

private func noMoreThanWasAskedFor(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    for number in 3...8 {
        let channel = try await StoreFixture.open(UInt64(number), of: fixture.base.device, in: fixture.store)
        _ = try await fixture.put(
            fixture.request(
                on: channel, ping: "http://host\(number).example", due: start.adding(seconds: Int64(20 - number))
            ))
    }
    let calls = try await fixture.lease(at: start.adding(seconds: 60), limit: 4)
    #expect(
        calls.compactMap { $0.watch?.ping?.address.peer } == (5...8).reversed().map { "host\($0).example:80" })
    #expect(try await fixture.lease(at: start.adding(seconds: 60), limit: 4).count == 2)
}
