import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let counters: [StoreCase] = [
        StoreCase("the limit of devices of an app counts the devices of all homes", devicesOfAllHomes),
        StoreCase("devices that one home added and another removed do not count", removedByAnotherHome),
        StoreCase("watches that one home added and another ended do not count", watchesOfTwoHomes),
    ]
}

private func twoHomes(_ store: any Store) async throws -> (one: any HomeStore, two: any HomeStore) {
    let fences = [try await store.addIncarnation(of: NodeNumber(1)), try await store.addIncarnation(of: NodeNumber(2))]
    return (store.home(fences[0]), store.home(fences[1]))
}

private func expectNoWrongCounters(_ stores: any StoreMaker, _ store: any Store) async throws {
    let wrong = try await stores.wrongCounters(in: store)
    #expect(wrong == [])
}

private func devicesOfAllHomes(_ stores: any StoreMaker) async throws {
    let store = try await stores.open(StoreSettings(devicesPerApp: 3))
    _ = try await store.createApp(StoreFixture.appID, at: start)
    let homes = try await twoHomes(store)
    func insert(_ number: UInt64, in home: any HomeStore) async throws -> Device? {
        let new = NewDevice(DeviceID(Bytes16(high: 1, low: number)), app: try StoreFixture.appID)
        let credential = NewCredential.fixed(SecretHash(of: [UInt8(number)]))
        guard case .stored(let device, _) = try await home.insertDevice(new, at: start, credential: credential) else {
            return nil
        }
        return device
    }
    let first = try #require(try await insert(1, in: homes.one))
    let second = try #require(try await insert(2, in: homes.one))
    let third = try #require(try await insert(3, in: homes.two))
    for home in [homes.one, homes.two] { #expect(try await insert(4, in: home) == nil) }
    try await expectNoWrongCounters(stores, store)
    #expect(try await homes.two.deleteDevice(first.serial, at: start) != nil)
    let fifth = try #require(try await insert(5, in: homes.two))
    for home in [homes.one, homes.two] { #expect(try await insert(6, in: home) == nil) }
    try await expectNoWrongCounters(stores, store)
    for device in [second, third, fifth] {
        #expect(try await homes.two.deleteDevice(device.serial, at: start) != nil)
    }
    try await expectNoWrongCounters(stores, store)
    _ = try await store.deleteApp(StoreFixture.appID, at: start)
    while try await !homes.one.continueDeletions(at: start, limit: 10).isDone {}
    try await expectNoWrongCounters(stores, store)
}

private func removedByAnotherHome(_ stores: any StoreMaker) async throws {
    let fixture = try await SubscriptionFixture(stores)
    let (store, base) = (fixture.store, fixture.base)
    let homes = try await twoHomes(store)
    let rules = AppendRules()
    _ = try await homes.one.commit([.append(base.envelope(1), rules), .append(base.envelope(2, bytes: 20), rules)])
    #expect(try await store.waitingInAll() == .init(envelopes: 2, bytes: waitingBytes(base)))
    try await expectNoWrongCounters(stores, store)
    #expect(try await homes.two.commit([base.acknowledge(1), base.acknowledge(2)]) == [.finished, .finished])
    #expect(try await store.waitingInAll() == .init())

    let request = try fixture.request(1, SubscriptionFixture.definition())
    guard case .made(let subscription) = try await homes.one.putSubscription(request, at: start) else {
        throw StoreFixture.Missing()
    }
    try await expectNoWrongCounters(stores, store)
    let ended = EndedSubscription(serial: subscription.serial, device: subscription.device)
    #expect(try await homes.two.endSubscriptions([ended.serial], of: ended.device) == 1)
    try await homes.two.removeSubscriptions([ended], at: start)
    _ = try await fixture.update("a")
    #expect(try await homes.two.deleteItem(fixture.item("a"), ifIdleSince: nil))
    try await expectNoWrongCounters(stores, store)
}

private func waitingBytes(_ fixture: StoreFixture) -> Int {
    fixture.envelope(1).byteCount + fixture.envelope(2, bytes: 20).byteCount
}

private func watchesOfTwoHomes(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (store, base) = (fixture.store, fixture.base)
    let homes = try await twoHomes(store)
    for channel in [base.first, base.second] {
        let put = try await homes.one.putWatch(fixture.request(on: channel, gone: "http://gone.example"), at: start)
        guard case .put = put else { throw StoreFixture.Missing() }
    }
    #expect(try await homes.two.removeWatch(of: base.first.serial))
    try await expectNoWrongCounters(stores, store)
    // The last watch of the app causes a callback, which the first home makes.
    #expect(try await homes.two.deleteDevice(base.device.serial, at: start) != nil)
    try await expectNoWrongCounters(stores, store)
    let calls = try await fixture.drain(at: WatchFixture.aMonth)
    #expect(calls.count == 1)
    try await expectNoWrongCounters(stores, store)
}
