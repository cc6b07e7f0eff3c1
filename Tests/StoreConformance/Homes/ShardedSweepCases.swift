import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let shardedSweeps: [StoreCase] = [
        StoreCase("a home finds statuses and idle devices of its shards alone", devicesOfShards),
        StoreCase("a home finds channels of former users in its shards alone", formerChannelsOfShards),
        StoreCase("a home ends and forgets requests to providers of its shards alone", requestsOfShards),
        StoreCase("a home ends subscriptions of its shards alone", subscriptionsOfShards),
        StoreCase("a home finds throttled firings of its shards alone", heldFiringsOfShards),
        StoreCase("a home finds completions and ended bindings of its shards alone", completionsOfShards),
        StoreCase("a home restores completions of its shards alone", broughtBackCompletionsOfShards),
        StoreCase("a home finishes completions of ended updates in its shards alone", unfinishedOfShards),
        StoreCase("a home finds hidden completions of ended updates in its shards alone", hiddenOfShards),
        StoreCase("a home forgets locations of its shards alone", locationsOfShards),
        StoreCase("a home defers pings of its shards alone", pingsOfShards),
    ]
}

private func devicesOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, device, other) = (fixture.store, fixture.device, try await fixture.anotherDevice(2).serial)
    let sets = try ShardSets(device, other)
    let cutoff = RetentionTime.uninterrupted(at: start.adding(seconds: 100)).cutoff(afterSeconds: 10)
    for suspended in [device, other] { try await fixture.suspend(suspended) }
    let expected: [(ShardSet, [DeviceSerial])] = [
        (sets.first, [device]), (sets.second, [other]), (sets.rest, []), (.all, [device, other]),
    ]
    for (set, found) in expected {
        #expect(try await store.pendingStatuses(in: set, limit: 9).map(\.device) == found)
        for reason in [UnusedDevice.Reason.inactive, .suspended] {
            let idle = try await store.unusedDevices(reason, in: set, by: cutoff, limit: 9).map(\.serial)
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
    let (store, device, other) = (fixture.store, fixture.device, try await fixture.anotherDevice(2).serial)
    let sets = try ShardSets(device, other)
    let end = start.adding(seconds: 9)
    let definition = try SubscriptionFixture.definition(expiresAt: end)
    _ = try await fixture.subscribe(fixture.request(1, definition))
    _ = try await fixture.subscribe(fixture.request(2, definition, of: other))
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
    let (store, device, other) = (fixture.store, fixture.device, try await fixture.anotherDevice(2).serial)
    let sets = try ShardSets(device, other)
    let owners: [(UInt64, String, DeviceSerial)] = [(1, "a", device), (2, "b", other)]
    for (number, item, owner) in owners {
        let definition = try SubscriptionFixture.definition([item], pace: FiringPace(maxFrequency: 1))
        let subscription = try await fixture.subscribe(fixture.request(number, definition, of: owner))
        let targets = [fixture.target(subscription)]
        let numbers = try #require(try await fixture.update(item, firing: [targets, targets]))
        let fired = try await fixture.fire(Int64(number), subscription, on: item, by: numbers[0])
        #expect(fired == .stored(replaced: nil))
        let held = try await store.throttle([fixture.held(subscription, on: item, by: numbers[1])], at: start)
        #expect(held == [.throttled(insteadOf: 0)])
    }
    let due = start.adding(seconds: 1)
    let expected: [(ShardSet, [DeviceSerial])] = [(sets.first, [device]), (sets.second, [other]), (sets.rest, [])]
    for (set, found) in expected {
        #expect(try await store.dueFirings(in: set, at: due, limit: 9).map(\.device) == found)
        #expect(try await store.nextThrottledFiring(in: set) == (found.isEmpty ? nil : due))
    }
    let before = start.adding(seconds: -60)
    try await store.bringBackThrottled(in: sets.rest, at: before)
    #expect(try await store.nextThrottledFiring(in: .all) == due)
    try await store.bringBackThrottled(in: sets.second, at: before)
    #expect(try await store.nextThrottledFiring(in: sets.second) == before.adding(seconds: 1))
    #expect(try await store.nextThrottledFiring(in: sets.first) == due)
}

/// Two devices, each with a binding that has an update.
private struct TwoBindings {
    let fixture: UpdateFixture
    let update: Update
    let first: UpdateBinding
    let second: UpdateBinding
    let sets: ShardSets

    init(_ stores: any StoreMaker, _ machine: CompletionMachine, at now: Timestamp = start) async throws {
        fixture = try await UpdateFixture(stores)
        let other = try await fixture.anotherDevice(2)
        update = try await fixture.publish(1, ttl: 1_000_000)
        first = try await fixture.bind()
        second = try await fixture.bind("main", other.serial)
        sets = try ShardSets(first.device, second.device)
        for binding in [first, second] { try await fixture.evaluate([update], binding, machine: machine, at: now) }
    }

    func dueTimes() async throws -> [Timestamp?] {
        let (first, second) = (
            try await fixture.completion(update, first), try await fixture.completion(update, second)
        )
        return [first?.machine.dueAt, second?.machine.dueAt]
    }
}

private func completionsOfShards(_ stores: any StoreMaker) async throws {
    let due = start.adding(seconds: 5)
    let bindings = try await TwoBindings(stores, CompletionMachine(.stored, attempt: 1, dueAt: due))
    let (store, sets, first, second) = (bindings.fixture.store, bindings.sets, bindings.first, bindings.second)
    let expected: [(ShardSet, [DeviceSerial])] = [
        (sets.first, [first.device]), (sets.second, [second.device]), (sets.rest, []),
    ]
    for (set, found) in expected {
        let completions = try await store.dueCompletions(of: nil, in: set, at: due, limit: 9)
        #expect(completions.map(\.binding.device) == found)
    }
    #expect(try await store.dueCompletions(of: first.serial, in: sets.first, at: due, limit: 9).count == 1)
    #expect(try await store.dueCompletions(of: first.serial, in: sets.second, at: due, limit: 9).isEmpty)
    for device in [first.device, second.device] { _ = try await bindings.fixture.bind("other", device) }
    for (set, found) in expected {
        #expect(try await store.bindingsToRelease(in: set, limit: 9).map(\.device) == found)
    }
}

private func broughtBackCompletionsOfShards(_ stores: any StoreMaker) async throws {
    // Written by a clock that was a day ahead.
    let ahead = start.adding(seconds: 86_400)
    let due = ahead.adding(seconds: 50)
    let bindings = try await TwoBindings(stores, CompletionMachine(.deferred, attempt: 1, dueAt: due), at: ahead)
    let (store, sets, soon) = (bindings.fixture.store, bindings.sets, start.adding(seconds: 50))
    #expect(try await store.bringBackCompletions(in: sets.rest, dueAfter: start, at: start, limit: 9))
    #expect(try await bindings.dueTimes() == [due, due])
    #expect(try await store.bringBackCompletions(in: sets.second, dueAfter: start, at: start, limit: 9))
    #expect(try await bindings.dueTimes() == [due, soon])
    #expect(try await store.bringBackCompletions(in: sets.first, dueAfter: start, at: start, limit: 9))
    #expect(try await bindings.dueTimes() == [soon, soon])
}

private func unfinishedOfShards(_ stores: any StoreMaker) async throws {
    let bindings = try await TwoBindings(stores, CompletionMachine(.stored, attempt: 1))
    let (store, sets, update) = (bindings.fixture.store, bindings.sets, bindings.update)
    _ = try await store.withdrawUpdate(update, by: bindings.fixture.key, at: start)
    func unfinished(_ set: ShardSet) async throws -> [DeviceSerial] {
        try await store.unfinishedOfEnded(in: set, limit: 9).map(\.device)
    }
    func finish(_ binding: UpdateBinding) async throws {
        try await store.endCompletions([(bindings.fixture.name(update, binding), .withdrawn)], at: start)
    }
    #expect(try await unfinished(sets.rest).isEmpty)
    #expect(try await unfinished(sets.first) == [bindings.first.device])
    try await finish(bindings.first)
    #expect(try await unfinished(sets.first).isEmpty)
    #expect(try await unfinished(sets.second) == [bindings.second.device])
    try await finish(bindings.second)
    for set in [sets.first, sets.second, .all] { #expect(try await unfinished(set).isEmpty) }
}

private func hiddenOfShards(_ stores: any StoreMaker) async throws {
    let bindings = try await TwoBindings(stores, CompletionMachine(.stored, attempt: 1))
    let (store, sets, update) = (bindings.fixture.store, bindings.sets, bindings.update)
    _ = try await store.withdrawUpdate(update, by: bindings.fixture.key, at: start)
    try await bindings.fixture.store.endCompletions([(bindings.fixture.name(update, bindings.first), .withdrawn)], at: start)
    try await stores.hideUnfinished(of: update.serial, in: store)
    for (set, count) in [(sets.rest, 0), (sets.first, 0), (sets.second, 1)] {
        _ = try await store.findUnfinishedOfEnded(in: set, after: UpdateSerial(0), limit: 9)
        #expect(try await store.unfinishedOfEnded(in: .all, limit: 9).count == count)
    }
}

private func locationsOfShards(_ stores: any StoreMaker) async throws {
    let bindings = try await TwoBindings(stores, CompletionMachine())
    let (store, sets) = (bindings.fixture.store, bindings.sets)
    var revisions: [Int64] = []
    for var binding in [bindings.first, bindings.second] {
        binding.locatedAt = start
        _ = try #require(try await store.change(binding, hasOtherKinds: false, at: start))
        revisions.append(try #require(try await store.presentBinding(of: binding.device)).revision)
    }
    for (set, changed) in [(sets.rest, [0, 0]), (sets.second, [0, 1]), (sets.second, [0, 1]), (sets.first, [1, 1])] {
        try await store.forgetLocations(in: set, before: start, limit: 9)
        for (place, binding) in [bindings.first, bindings.second].enumerated() {
            let present = try #require(try await store.presentBinding(of: binding.device))
            #expect(present.revision == revisions[place] + Int64(changed[place]))
            #expect((present.locatedAt == nil) == (changed[place] == 1))
        }
    }
}

private func pingsOfShards(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (store, channel) = (fixture.store, fixture.base.first)
    let other = try await fixture.addDevice(7, app: "com.example.app").channel
    let sets = try ShardSets(channel.device, other.device)
    for channel in [channel, other] { _ = try await fixture.put(fixture.request(on: channel, every: 60)) }
    let now = start.adding(seconds: 86_400)
    try await store.spreadOverduePings(in: sets.rest, at: now)
    #expect(try await store.watch(of: other.serial)?.dueAt == start)
    try await store.spreadOverduePings(in: sets.second, at: now)
    #expect(try await store.watch(of: channel.serial)?.dueAt == start)
    let due = try #require(try await store.watch(of: other.serial)?.dueAt)
    #expect((now..<now.adding(seconds: 60)).contains(due))
    try await store.spreadOverduePings(in: sets.first, at: now)
    let next = try #require(try await store.watch(of: channel.serial)?.dueAt)
    #expect((now..<now.adding(seconds: 60)).contains(next))
}
