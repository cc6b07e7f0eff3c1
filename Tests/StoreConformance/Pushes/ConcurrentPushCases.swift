import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let concurrentPushes: [StoreCase] = [
        StoreCase("concurrent leases never have the same push", leasedOnce),
        StoreCase("of concurrent ends of a lease one counts", endedOnce),
        StoreCase("parked pushes are requeued once", requeuedOnce),
    ]
}

private func leasedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    for number in UInt64(0)..<10 {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID,
            profile: try PushFixture.profile("bb1\(number)"))
        let device = try #require(try await fixture.base.insert(new, secret: [9, UInt8(number)]))
        let channel = try await StoreFixture.open(number, of: device, in: fixture.store)
        let rules = AppendRules(wake: WakeRequest(.background, dueAt: start))
        try await fixture.commit(.append(fixture.base.envelope(Int64(number) + 1, on: channel), rules))
    }
    let queue = fixture.queue
    let leased = try await concurrently(8) { _ in
        try await fixture.store.leasePushes(of: queue, limit: 2, at: start, until: start.after(30)).pushes
    }
    let devices = leased.flatMap(\.self).map(\.device)
    #expect(devices.count == 10 && Set(devices).count == 10)
    #expect(leased.map(\.count).max() == 2)
    #expect(try await fixture.lease().isEmpty)
}

private func endedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try #require(try await fixture.lease().first)
    let states = try await concurrently(5) { _ in
        try await fixture.store.endPushes([PushEnd(push, .handed, at: start.after(1))])
    }
    #expect(states.flatMap(\.self) == [.handed])
    #expect(try await fixture.store.endPushes([]).isEmpty)
}

private func requeuedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    try await fixture.end(try #require(try await fixture.lease().first), .parked(reason: "BadTopic"))
    let app = fixture.base.device.app
    let counts = try await concurrently(5) { _ in try await fixture.store.requeueParkedPushes(of: app, at: start.after(1)) }
    #expect(counts.reduce(0, +) == 1)
    #expect(try await fixture.store.parkedPushes(of: app, limit: 9).isEmpty)
}
