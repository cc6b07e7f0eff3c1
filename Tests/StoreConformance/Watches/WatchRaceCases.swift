import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = WatchFixture.start

extension StoreCase {
    static let watchRaces: [StoreCase] = [
        StoreCase("a watch that is put concurrently is created once, and removed once", watchIsMadeOnce),
        StoreCase("concurrent puts of watches stay within the limits", watchesAtOnceAreLimited),
        StoreCase("work that is leased concurrently has one lease, which is answered once", workIsLeasedOnce),
        StoreCase("a late answer counts until the work is leased again", lateAnswerCounts),
        StoreCase("an unreadable watch is counted and deferred, and delays no other", unreadableWatchIsPutOff),
    ]
}

private func watchIsMadeOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let store = fixture.store
    for _ in 0..<5 {
        let requests = try (UInt8(0)..<8).map { try fixture.request(ping: "http://host\($0).example", secret: $0) }
        let results = try await atOnce(requests.count) { place in try await store.putWatch(requests[place], at: start) }
        var (made, all): ([Watch], [Watch]) = ([], [])
        for case .put(let watch, let isNew) in results {
            all.append(watch)
            if isNew { made.append(watch) }
        }
        #expect(made.count == 1 && all.count == 8)
        #expect(Set(all.map(\.revision)).count == 8, "each change is based on the earlier one")
        let secret = try #require(made.first).sealed.secret
        #expect(all.allSatisfy { $0.sealed.secret == secret }, "the first one's secret stays")
        let watch = try #require(try await store.watch(of: fixture.base.first.serial))
        #expect(all.contains(watch))
        let ping = try #require(watch.ping)
        #expect(try await fixture.due(at: start).map(\.peer) == [ping.address.peer])
        let removed = try await atOnce(8) { _ in try await store.removeWatch(of: fixture.base.first.serial) }
        #expect(removed.filter { $0 }.count == 1)
        #expect(try await fixture.due(at: start).isEmpty)
    }
}

private func watchesAtOnceAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let store = fixture.store
    var channels = [fixture.base.first, fixture.base.second]
    for number in UInt64(3)...8 {
        channels.append(try await StoreFixture.open(number, of: fixture.base.device, in: store))
    }
    let all = channels
    let bounds: [(limits: WatchLimits, refusal: PutWatchResult)] = [
        (limits: WatchLimits(perDevice: 3, perApp: 100), refusal: .tooManyOfDevice),
        (limits: WatchLimits(perDevice: 100, perApp: 3), refusal: .tooManyOfApp),
    ]
    for (limits, refusal) in bounds {
        let requests = try all.map { channel -> WatchRequest in
            var request = try fixture.request(on: channel)
            request.limits = limits
            return request
        }
        let results = try await atOnce(requests.count) { place in try await store.putWatch(requests[place], at: start) }
        let isPut = results.map { result -> Bool in
            if case .put(_, isNew: true) = result { true } else { false }
        }
        #expect(isPut.filter { $0 }.count == 3)
        #expect(results.filter { $0 == refusal }.count == 5)
        for (channel, isThere) in zip(all, isPut) {
            #expect(try await store.removeWatch(of: channel.serial) == isThere)
        }
    }
}

private func workIsLeasedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let store = fixture.store
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(fixture.request(on: fixture.base.second, ping: "http://two.example"))
    for round in Int64(0)..<5 {
        let now = start.adding(seconds: round * 60)
        let due = try await fixture.due(at: now)
        #expect(due.count == 2)
        let leases = try await atOnce(8) { _ in
            try await store.leaseWork(due, at: now, until: now.adding(seconds: WorkLease.seconds)).items
        }
        let leased = leases.flatMap { $0 }
        #expect(leased.map(\.due.serial).sorted() == due.map(\.serial).sorted())
        for item in leased {
            let record = try fixture.record(item, due: now.adding(seconds: 60), at: now)
            let answered = try await atOnce(4) { _ in try await store.record(record) }
            #expect(answered.filter { $0 }.count == 1)
        }
    }
}

private func lateAnswerCounts(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    let late = start.adding(seconds: 31)
    #expect(try await fixture.due(at: late).count == 1, "the lease is over")
    let next = late.adding(seconds: 60)
    #expect(try await fixture.store.record(fixture.record(call, due: next, at: late)))
    #expect(try await fixture.due(at: next.adding(milliseconds: -1)).isEmpty)
    #expect(try await fixture.due(at: next).count == 1)
}

private func unreadableWatchIsPutOff(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let store = fixture.store
    let damaged = try await fixture.put(fixture.request()).watch
    _ = try await fixture.put(fixture.request(on: fixture.base.second, ping: "http://two.example"))
    try await stores.damageWatch(damaged.serial, in: store)
    let due = try await fixture.due(at: start)
    #expect(due.count == 2)
    let leased = try await store.leaseWork(due, at: start, until: start.adding(seconds: WorkLease.seconds))
    #expect(leased.unreadable == 1)
    #expect(leased.items.compactMap(\.watch?.channel) == [fixture.base.second.serial])
    let item = try #require(leased.items.first)
    let record = try fixture.record(item, due: WatchFixture.aMonth)
    #expect(try await store.record(record))
    #expect(try await fixture.due(at: start.adding(seconds: 3599)).isEmpty)
    #expect(try await fixture.due(at: start.adding(seconds: 3600)).count == 1)
    await #expect(throws: StoreFault.self) { try await store.watch(of: damaged.channel) }
    #expect(try await store.removeWatch(of: damaged.channel))
    #expect(try await fixture.put(fixture.request()).isNew)
}
