import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let shardedWork: [StoreCase] = [
        StoreCase("a home finds and leases pushes of its shards alone", pushesOfShards),
        StoreCase("a home ends pushes of its shards alone", endedPushesOfShards),
        StoreCase("a home lists and requeues parked pushes of its shards alone", parkedPushesOfShards),
        StoreCase("a home restores pushes of its shards alone", broughtBackPushesOfShards),
        StoreCase("a home shortens leases of pushes of its shards alone", shortenedPushesOfShards),
        StoreCase("a home forgets idle wakes of its shards alone", idleWakesOfShards),
        StoreCase("a home finds work of its shards alone, also behind other work of the queue", workOfShards),
        StoreCase("a home finds work of its shards behind queues of other shards, with a limit", limitedWorkOfShards),
        StoreCase("a home restores work of its shards alone", broughtBackWorkOfShards),
        StoreCase("a home shortens leases of work of its shards alone", shortenedWorkOfShards),
    ]
}

/// Two devices with push tokens in one push queue.
private struct TwoDevices {
    let fixture: PushFixture
    let other: Device
    let channel: PushChannel
    let sets: ShardSets
    var store: any Store { fixture.store }

    init(_ stores: any StoreMaker) async throws {
        fixture = try await PushFixture(stores)
        let new = NewDevice(
            DeviceID(Bytes16(high: 1, low: 3)), app: try StoreFixture.appID, profile: try PushFixture.profile("cc03"))
        other = try #require(try await fixture.base.insert(new, secret: [5]))
        channel = try await StoreFixture.open(1, of: other, in: fixture.store)
        sets = try ShardSets(fixture.device, other.serial)
    }

    /// Sends a message: with position 1 to the first device, with position 2 to the other device.
    func send(_ position: Int64, at now: Timestamp = start) async throws {
        let envelope = fixture.base.envelope(position, on: position == 1 ? nil : channel, ttl: 100, at: now)
        let results = try await fixture.commit(
            .append(envelope, AppendRules(wake: WakeRequest(.background, dueAt: now))))
        try #require(results == [.stored(replaced: nil)])
    }

    func isDue(in shards: ShardSet, at now: Timestamp = start) async throws -> Bool {
        try await store.dueQueues(in: shards, at: now) == [fixture.queue]
    }

    func pushes(in shards: ShardSet, at now: Timestamp) async throws -> [LeasedPush] {
        try await store.leasePushes(
            of: fixture.queue, in: shards, limit: 9, at: now, until: now.adding(seconds: 30)
        ).pushes
    }

    func lease(in shards: ShardSet, at now: Timestamp = start) async throws -> [DeviceSerial] {
        try await pushes(in: shards, at: now).map(\.device)
    }

    func standings(_ position: Int64, at now: Timestamp) async throws -> [PushRecord.Standing] {
        let device = position == 1 ? fixture.device : other.serial
        return try await store.pushes(for: fixture.base.envelope(position).id, of: device, at: now).map(\.standing)
    }
}

private func pushesOfShards(_ stores: any StoreMaker) async throws {
    let devices = try await TwoDevices(stores)
    let sets = devices.sets
    try await devices.send(1)
    #expect(try await devices.isDue(in: sets.first))
    #expect(try await !devices.isDue(in: sets.second))
    #expect(try await !devices.isDue(in: sets.rest))
    try await devices.send(2)
    #expect(try await devices.isDue(in: sets.second))
    #expect(try await devices.lease(in: sets.rest).isEmpty)
    #expect(try await devices.lease(in: sets.second) == [devices.other.serial])
    #expect(try await !devices.isDue(in: sets.second))
    #expect(try await devices.lease(in: sets.second).isEmpty)
    #expect(try await devices.lease(in: sets.first) == [devices.fixture.device])
    // Both wakes have pushes now. The leases of these pushes end.
    let later = start.adding(seconds: 31)
    for set in [sets.first, sets.second] {
        #expect(try await devices.isDue(in: set, at: later))
        #expect(try await devices.lease(in: set, at: later).count == 1)
        #expect(try await !devices.isDue(in: set, at: later))
    }
    #expect(try await !devices.isDue(in: sets.rest, at: later))
}

private func endedPushesOfShards(_ stores: any StoreMaker) async throws {
    let devices = try await TwoDevices(stores)
    let (store, sets) = (devices.store, devices.sets)
    for position in [Int64(1), 2] { try await devices.send(position) }
    for push in try await devices.pushes(in: .all, at: start) {
        let verdict = PushEnd.Verdict.again(at: start.adding(seconds: 60), isSpent: false, reason: "x")
        _ = try await store.endPushes([PushEnd(push, verdict, at: start)])
    }
    let later = start.adding(seconds: 101)
    let before = try await (devices.standings(1, at: later), devices.standings(2, at: later))
    #expect(before.0.count == 1 && before.1.count == 1)
    #expect(try await store.sweepPushes(in: sets.rest, at: later, forgetting: nil, limit: 9))
    #expect(try await devices.standings(1, at: later) == before.0)
    #expect(try await store.sweepPushes(in: sets.first, at: later, forgetting: nil, limit: 9))
    #expect(try await devices.standings(1, at: later) != before.0)
    #expect(try await devices.standings(2, at: later) == before.1)
    #expect(try await store.sweepPushes(in: sets.second, at: later, forgetting: nil, limit: 9))
    #expect(try await devices.standings(2, at: later) != before.1)
    // Finished pushes are removed in the same way.
    let end = RetentionTime.uninterrupted(at: start.adding(seconds: 30 * 86_400))
    #expect(try await store.sweepPushes(in: sets.second, at: end.now, forgetting: end, limit: 9))
    #expect(try await devices.standings(1, at: end.now).count == 1)
    #expect(try await devices.standings(2, at: end.now).isEmpty)
}

private func parkedPushesOfShards(_ stores: any StoreMaker) async throws {
    let devices = try await TwoDevices(stores)
    let (store, sets, app) = (devices.store, devices.sets, devices.fixture.queue.app)
    for position in [Int64(1), 2] { try await devices.send(position) }
    for push in try await devices.pushes(in: .all, at: start) {
        _ = try await store.endPushes([PushEnd(push, .parked(reason: "BadTopic"), at: start)])
    }
    func counts() async throws -> [Int] {
        var counts: [Int] = []
        for set in [sets.first, sets.second, sets.rest] {
            counts.append(try await store.parkedPushes(of: app, in: set, limit: 9).count)
        }
        return counts
    }
    #expect(try await counts() == [1, 1, 0])
    #expect(try await store.requeueParkedPushes(of: app, in: sets.rest, at: start) == 0)
    #expect(try await store.requeueParkedPushes(of: app, in: sets.second, at: start) == 1)
    #expect(try await counts() == [1, 0, 0])
    #expect(try await devices.lease(in: sets.second) == [devices.other.serial])
    #expect(try await store.requeueParkedPushes(of: app, in: sets.first, at: start) == 1)
    #expect(try await counts() == [0, 0, 0])
}

private func broughtBackPushesOfShards(_ stores: any StoreMaker) async throws {
    let devices = try await TwoDevices(stores)
    let (store, sets) = (devices.store, devices.sets)
    for position in [Int64(1), 2] { try await devices.send(position, at: start.adding(seconds: 3600)) }
    #expect(try await !devices.isDue(in: .all))
    try await store.bringBackPushes(in: sets.rest, at: start)
    #expect(try await !devices.isDue(in: .all))
    try await store.bringBackPushes(in: sets.first, at: start)
    #expect(try await devices.isDue(in: sets.first))
    #expect(try await !devices.isDue(in: sets.second))
    try await store.bringBackPushes(in: sets.second, at: start)
    #expect(try await devices.isDue(in: sets.second))
}

private func shortenedPushesOfShards(_ stores: any StoreMaker) async throws {
    let devices = try await TwoDevices(stores)
    let (store, sets) = (devices.store, devices.sets)
    try await devices.fixture.setAlertText("{}")
    for position in [Int64(1), 2] {
        let envelope = devices.fixture.base.envelope(position, on: position == 1 ? nil : devices.channel, ttl: 100_000)
        try await devices.fixture.commit(.append(envelope, AppendRules(wake: WakeRequest(.alert, dueAt: start))))
    }
    // The clock was ahead when the pushes were leased.
    #expect(try await devices.lease(in: .all, at: start.adding(seconds: 3600)).count == 2)
    let end = start.adding(seconds: LeasedPush.leaseSeconds)
    for (set, areDue) in [(sets.rest, [false, false]), (sets.second, [false, true]), (sets.first, [true, true])] {
        try await store.bringBackPushes(in: set, at: start)
        #expect(try await devices.isDue(in: sets.first, at: end) == areDue[0])
        #expect(try await devices.isDue(in: sets.second, at: end) == areDue[1])
    }
}

private func idleWakesOfShards(_ stores: any StoreMaker) async throws {
    let devices = try await TwoDevices(stores)
    let (store, sets) = (devices.store, devices.sets)
    for position in [Int64(1), 2] { try await devices.send(position) }
    for push in try await devices.pushes(in: .all, at: start) {
        _ = try await store.endPushes([PushEnd(push, .handed, at: start)])
    }
    for (position, device) in [(Int64(1), devices.fixture.device), (2, devices.other.serial)] {
        let finalOutcome = FinalOutcome(.acknowledged, at: start)
        try await devices.fixture.commit(
            .finish(devices.fixture.base.envelope(position).id, device: device, finalOutcome))
    }
    let later = start.adding(seconds: WakePace.shortestSeconds)
    for (set, left) in [(sets.rest, 2), (sets.second, 1), (sets.second, 1), (sets.first, 0)] {
        #expect(try await store.sweepPushes(in: set, at: later, forgetting: nil, limit: 9))
        #expect(try await stores.count(.wakes, in: store) == left)
    }
}

/// Two devices with pings in one queue.
private struct TwoPings {
    let fixture: WatchFixture
    let devices: [DeviceSerial]
    let sets: ShardSets

    /// - Parameter now: The time at which the watches are stored. The ping of the first device is due then.
    init(_ stores: any StoreMaker, at now: Timestamp = start) async throws {
        fixture = try await WatchFixture(stores)
        let other = try await fixture.addDevice(7, app: "com.example.app")
        devices = [fixture.base.device.serial, other.device.serial]
        sets = try ShardSets(devices[0], devices[1])
        _ = try await fixture.put(fixture.request(due: now), at: now)
        _ = try await fixture.put(fixture.request(on: other.channel, due: now.adding(seconds: 1)), at: now)
    }

    func due(in shards: ShardSet, at now: Timestamp, limit: Int = 9) async throws -> [DeviceSerial] {
        try await fixture.store.dueWork(in: shards, at: now, besides: BusyPeerSets(), limit: limit).map(\.device)
    }
}

private func workOfShards(_ stores: any StoreMaker) async throws {
    let pings = try await TwoPings(stores)
    let (sets, devices) = (pings.sets, pings.devices)
    #expect(try await pings.due(in: .all, at: start) == [devices[0]])
    #expect(try await pings.due(in: sets.second, at: start).isEmpty)
    let later = start.adding(seconds: 1)
    #expect(try await pings.due(in: sets.first, at: later) == [devices[0]])
    #expect(try await pings.due(in: sets.second, at: later) == [devices[1]])
    #expect(try await pings.due(in: sets.rest, at: later).isEmpty)
    #expect(try await pings.due(in: .none, at: later).isEmpty)
}

private func limitedWorkOfShards(_ stores: any StoreMaker) async throws {
    let pings = try await TwoPings(stores)
    let (sets, devices, later) = (pings.sets, pings.devices, start.adding(seconds: 2))
    #expect(try await pings.due(in: sets.second, at: later, limit: 1) == [devices[1]])
    // The ping of the first device is now in another queue, which is due earlier.
    _ = try await pings.fixture.put(pings.fixture.request(ping: "http://other.example/ping", due: start))
    #expect(try await pings.due(in: .all, at: later, limit: 1) == [devices[0]])
    #expect(try await pings.due(in: sets.second, at: later, limit: 1) == [devices[1]])
}

private func broughtBackWorkOfShards(_ stores: any StoreMaker) async throws {
    let pings = try await TwoPings(stores, at: start.adding(seconds: 3600))
    let (store, sets, devices) = (pings.fixture.store, pings.sets, pings.devices)
    let soon = start.adding(seconds: 1)
    try await store.bringBackWork(in: sets.rest, at: start)
    #expect(try await pings.due(in: .all, at: soon).isEmpty)
    try await store.bringBackWork(in: sets.second, at: start)
    #expect(try await pings.due(in: sets.second, at: soon) == [devices[1]])
    #expect(try await pings.due(in: sets.first, at: soon).isEmpty)
    try await store.bringBackWork(in: sets.first, at: start)
    #expect(try await pings.due(in: sets.first, at: soon) == [devices[0]])
}

private func shortenedWorkOfShards(_ stores: any StoreMaker) async throws {
    let pings = try await TwoPings(stores)
    let (store, sets, devices) = (pings.fixture.store, pings.sets, pings.devices)
    // The clock was ahead when the pings were leased.
    let ahead = start.adding(seconds: 3600)
    for set in [sets.first, sets.second] {
        let due = try await store.dueWork(in: set, at: ahead, besides: BusyPeerSets(), limit: 9)
        let leased = try await store.leaseWork(due, at: ahead, until: ahead.adding(seconds: WorkLease.seconds))
        #expect(leased.items.count == 1)
    }
    let now = start.adding(seconds: 2)
    try await store.bringBackWork(in: sets.rest, at: now)
    #expect(try await pings.due(in: .all, at: now).isEmpty)
    try await store.bringBackWork(in: sets.second, at: now)
    #expect(try await pings.due(in: sets.second, at: now) == [devices[1]])
    #expect(try await pings.due(in: sets.first, at: now).isEmpty)
    try await store.bringBackWork(in: sets.first, at: now)
    #expect(try await pings.due(in: sets.first, at: now) == [devices[0]])
}
