import CarillonCore
import CarillonWire
import Testing

private let start = PushFixture.start

extension StoreCase {
    static let concurrentPushes: [StoreCase] = [
        StoreCase("concurrent leases never have one push twice", leasedOnce),
        StoreCase("of concurrent ends of a lease one counts", endedOnce),
        StoreCase("parked pushes are put back once", requeuedOnce),
    ]
}

private func leasedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    _ = try await fixture.store.putAlert("{}", of: try StoreFixture.appID)
    for position in Int64(1)...12 { try await fixture.commit(fixture.append(position, .alert, urgency: .high)) }
    let now = start.after(60)
    let lane = fixture.lane
    let leased = try await concurrently(6) { _ in
        try await fixture.store.leasePushes(of: lane, limit: 4, at: now, until: now.after(30)).pushes
    }
    let ids = leased.flatMap(\.self).map(\.id)
    #expect(ids.count >= 12 && Set(ids).count == ids.count)
    #expect(leased.map(\.count).max() ?? 0 <= 4)
    #expect(try await fixture.lease(at: now).isEmpty)
}

private func endedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await PushFixture(stores)
    try await fixture.commit(fixture.append(1))
    let push = try #require(try await fixture.lease().first)
    let facts = try await concurrently(5) { _ in
        try await fixture.store.endPushes([PushEnd(push, .handed, at: start.after(1))])
    }
    #expect(facts.flatMap(\.self) == [.handed(.wake)])
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
