import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

private func fill(_ fixture: StoreFixture, _ count: Int64) async throws {
    let operations = (1...count).map { InboxOperation.append(fixture.envelope($0), AppendRules()) }
    _ = try await fixture.store.commit(operations)
}

/// Other devices of the same app, each with a channel and the given number of envelopes.
private func addDevices(_ numbers: ClosedRange<UInt8>, _ envelopes: Int64, to fixture: StoreFixture) async throws {
    for number in numbers {
        let new = NewDevice(DeviceID(Bytes16(high: 2, low: UInt64(number))), app: try StoreFixture.appID)
        let device = try #require(try await fixture.insert(new, secret: [9, number]))
        let channel = try await StoreFixture.open(1, of: device, in: fixture.store)
        let first = Int64(number) * 10_000
        _ = try await fixture.store.commit(
            (first..<first + envelopes).map { .append(fixture.envelope($0, on: channel), AppendRules()) })
    }
}

private func finish(_ store: any Store, limit: Int) async throws -> (steps: Int, removed: RemovedDevices) {
    var (steps, removed) = (0, RemovedDevices())
    while true {
        let before = try await store.waitingInAll().envelopes
        let step = try await store.continueDeletions(at: start, limit: limit)
        steps += 1
        removed.devices += step.removed.devices
        removed.channels += step.removed.channels
        #expect(try await before - store.waitingInAll().envelopes <= limit)
        if step.isDone { return (steps, removed) }
    }
}

extension StoreCase {
    static let deletion: [StoreCase] = [
        StoreCase("a device with a long inbox is removed at once, and its inbox in steps", longInboxGoesInSteps),
        StoreCase(
            "the outcomes of a long removed inbox are stored up to the limit of a device", longInboxLeavesSoManyOutcomes),
        StoreCase("an app is removed at once for all callers, and its devices in steps", appGoesInSteps),
        StoreCase("a deletion continues after a kill", deletionGoesOnAfterAKill),
    ]
}

private func longInboxGoesInSteps(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    try await fill(fixture, 1300)
    let (store, device) = (fixture.store, fixture.device.serial)
    let removed = try #require(try await store.deleteDevice(device, at: start))
    #expect(Set(removed.channels) == [fixture.first.serial, fixture.second.serial])
    #expect(try await store.waitingInAll().envelopes == 800)
    // No caller sees the difference.
    #expect(try await store.waiting(device: device, after: 0, limit: 9, bytes: 999, at: start) == nil)
    for position in [1, 600, 1300] as [Int64] { #expect(try await fixture.outcome(position) == .gone) }
    #expect(try await fixture.append(fixture.envelope(2000)) == .originGone)
    let (steps, others) = try await finish(store, limit: 300)
    #expect(steps == 4)
    #expect(others == RemovedDevices())
    #expect(try await store.waitingInAll() == .init())
    #expect(try await stores.wrongCounters(in: store) == [])
    for position in [1, 600, 1300] as [Int64] { #expect(try await fixture.outcome(position) == .gone) }
    #expect(try await store.continueDeletions(at: start, limit: 300).isDone)
}

private func longInboxLeavesSoManyOutcomes(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(outcomes: 16))
    try await fill(fixture, 1300)
    _ = try await fixture.store.deleteDevice(fixture.device.serial, at: start)
    _ = try await finish(fixture.store, limit: 300)
    var kept: [Int64] = []
    for position in Int64(1)...1300 where try await fixture.outcome(position) != nil { kept.append(position) }
    #expect(kept == Array(1285...1300))
}

private func appGoesInSteps(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    try await fill(fixture, 700)
    try await addDevices(1...5, 150, to: fixture)
    let (store, device) = (fixture.store, fixture.device)
    let key = AccessKey(
        id: KeyID(7), role: .sender, app: try StoreFixture.appID, name: nil, secretHash: SecretHash(of: [1]),
        createdAt: start)
    #expect(try await store.insertKey(key))
    #expect(try await store.deleteApp(try StoreFixture.appID, at: start))
    #expect(try await !store.deleteApp(try StoreFixture.appID, at: start))
    #expect(try await store.apps().isEmpty)
    #expect(try await store.app(try StoreFixture.appID) == nil)
    #expect(try await store.key(key.id) == nil)
    #expect(try await store.device(device.id) == nil)
    #expect(try await store.device(withCredential: device.credentialHash) == nil)
    #expect(try await store.channel(fixture.first.serial) == nil)
    #expect(try await store.waiting(device: device.serial, after: 0, limit: 9, bytes: 999, at: start) == nil)
    #expect(
        try await store.openChannel(
            ChannelID(Bytes16(high: 9, low: 9)), device: device.serial, name: nil, vapidKey: nil, wake: nil, limit: 9,
            at: start
        )
            == .deviceGone)
    #expect(try await fixture.outcome(1) == .gone)
    // Its name is free before the rest of it is removed, and another app can have it.
    let other = try #require(try await store.createApp(try StoreFixture.appID, at: start))
    let (steps, removed) = try await finish(store, limit: 100)
    #expect(steps > 14)
    #expect(removed.devices.count == 6)
    #expect(removed.channels.count == 7)
    #expect(try await store.waitingInAll() == .init())
    #expect(try await store.apps() == [other])
    for position in [1, 700, 10_000, 50_149] as [Int64] { #expect(try await fixture.outcome(position) == .gone) }
}

private func deletionGoesOnAfterAKill(_ stores: any StoreMaker) async throws {
    var fixture = try await StoreFixture(stores)
    try await fill(fixture, 700)
    try await addDevices(1...3, 10, to: fixture)
    #expect(try await fixture.store.deleteApp(try StoreFixture.appID, at: start))
    #expect(try await !fixture.store.continueDeletions(at: start, limit: 50).isDone)
    guard let store = try await stores.restart(fixture.store) else { return }
    fixture = fixture.again(store)
    #expect(try await fixture.store.device(fixture.device.id) == nil)
    #expect(try await finish(fixture.store, limit: 500).removed.devices.count == 3)
    #expect(try await fixture.store.waitingInAll() == .init())
}
