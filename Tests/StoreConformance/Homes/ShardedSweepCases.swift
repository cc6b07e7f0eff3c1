import CarillonCore
import CarillonWire
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let shardedSweeps: [StoreCase] = [
        StoreCase("a home finds statuses and idle devices of its shards alone", devicesOfShards),
        StoreCase("a home finds channels of former users in its shards alone", formerChannelsOfShards),
        StoreCase("a home ends and forgets requests to providers of its shards alone", requestsOfShards),
        StoreCase("a home ends subscriptions of its shards alone", subscriptionsOfShards),
        StoreCase("a home finds held firings of its shards alone", heldFiringsOfShards),
    ]
}

private func devicesOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device, other) = (fixture.store, fixture.device, try await fixture.anotherDevice().serial)
    let sets = try ShardSets(device, other)
    let cutoff = RetentionTime.uninterrupted(at: start.adding(seconds: 100)).cutoff(afterSeconds: 10)
    for suspended in [device, other] { try await fixture.suspend(suspended) }
    let expected: [(ShardSet, [DeviceSerial])] = [
        (sets.first, [device]), (sets.second, [other]), (sets.rest, []), (.all, [device, other]),
    ]
    for (set, found) in expected {
        #expect(try await store.untoldStatuses(in: set, limit: 9).map(\.device) == found)
        for reason in [CollectionReason.inactive, .suspended] {
            let idle = try await store.idleDevices(reason, in: set, by: cutoff, limit: 9).map(\.serial)
            #expect(Set(idle) == Set(found), "\(reason)")
        }
    }
}

private func formerChannelsOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let sets = try ShardSets(phone.serial, tablet.serial)
    var channels: [PushChannel] = []
    for device in [phone, tablet] {
        channels.append(try await StoreFixture.open(1, of: device, in: store))
        try await fixture.signIn(nil, on: device)
    }
    let expected: [(ShardSet, [PushChannel])] = [
        (sets.first, [channels[0]]), (sets.second, [channels[1]]), (sets.rest, []), (.all, channels),
    ]
    for (set, found) in expected {
        #expect(try await store.channelsOfFormerUsers(of: nil, in: set, limit: 9) == found)
    }
}

private func requestsOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(phone, tablet)
    let requests = [
        try await fixture.make(1, from: tablet, to: phone), try await fixture.make(2, from: phone, to: tablet),
    ]
    let sets = try ShardSets(phone.serial, tablet.serial)
    let end = start.adding(seconds: 60)
    let expected: [(ShardSet, [ServiceRequestID])] = [
        (sets.first, [requests[0].id]), (sets.second, [requests[1].id]), (sets.rest, []),
    ]
    for (set, found) in expected {
        #expect(try await store.dueRequests(in: set, at: end, limit: 9).map(\.id) == found)
    }
    for request in requests {
        let isCancelled = try await store.cancelRequest(request.serial, at: start)
        #expect(isCancelled)
    }
    let late = RetentionTime.uninterrupted(at: start.adding(seconds: 3 * 86_400))
    for (set, count) in [(sets.rest, 0), (sets.second, 1), (sets.second, 0), (sets.first, 1)] {
        #expect(try await store.forgetRequests(in: set, by: late, limit: 9) == count)
    }
}

private func subscriptionsOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device, other) = (fixture.store, fixture.device, try await fixture.anotherDevice().serial)
    let sets = try ShardSets(device, other)
    let end = start.adding(seconds: 9)
    let definition = try SubscriptionFixture.definition(expiresAt: end)
    _ = try await fixture.subscribe(fixture.wish(1, definition))
    _ = try await fixture.subscribe(fixture.wish(2, definition, of: other))
    #expect(try await store.endExpiredSubscriptions(in: sets.rest, at: end, limit: 9) == 0)
    #expect(try await store.endExpiredSubscriptions(in: sets.second, at: end, limit: 9) == 1)
    #expect(try await store.endedSubscriptions(of: nil, in: sets.second, limit: 9).map(\.device) == [other])
    #expect(try await store.endedSubscriptions(of: nil, in: sets.first, limit: 9).isEmpty)
    #expect(try await store.endExpiredSubscriptions(in: sets.first, at: end, limit: 9) == 1)
    #expect(try await store.endedSubscriptions(of: nil, in: sets.first, limit: 9).map(\.device) == [device])
    #expect(try await store.endedSubscriptions(of: nil, in: sets.rest, limit: 9).isEmpty)
}

private func heldFiringsOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device, other) = (fixture.store, fixture.device, try await fixture.anotherDevice().serial)
    let sets = try ShardSets(device, other)
    let owners: [(UInt64, String, DeviceSerial)] = [(1, "a", device), (2, "b", other)]
    for (number, item, owner) in owners {
        let definition = try SubscriptionFixture.definition([item], pace: FiringPace(maxFrequency: 1))
        let subscription = try await fixture.subscribe(fixture.wish(number, definition, of: owner))
        let targets = [fixture.target(subscription)]
        let numbers = try #require(try await fixture.update(item, firing: [targets, targets]))
        let fired = try await fixture.fire(Int64(number), subscription, on: item, by: numbers[0])
        #expect(fired == .stored(replaced: nil))
        let held = try await store.hold([fixture.held(subscription, on: item, by: numbers[1])], at: start)
        #expect(held == [.held(insteadOf: 0)])
    }
    let due = start.adding(seconds: 1)
    let expected: [(ShardSet, [DeviceSerial])] = [(sets.first, [device]), (sets.second, [other]), (sets.rest, [])]
    for (set, found) in expected {
        #expect(try await store.dueFirings(in: set, at: due, limit: 9).map(\.device) == found)
        #expect(try await store.nextHeldFiring(in: set) == (found.isEmpty ? nil : due))
    }
    let before = start.adding(seconds: -60)
    try await store.bringBackHeld(in: sets.rest, at: before)
    #expect(try await store.nextHeldFiring(in: .all) == due)
    try await store.bringBackHeld(in: sets.second, at: before)
    #expect(try await store.nextHeldFiring(in: sets.second) == before.adding(seconds: 1))
    #expect(try await store.nextHeldFiring(in: sets.first) == due)
}
