import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

private enum Ending: CaseIterable, Sendable {
    case unregistered, revoked, failed, deviceDeleted, appDeleted

    var reason: DisconnectReason {
        switch self {
        case .unregistered: .unregistered
        case .revoked, .failed: .revoked
        case .deviceDeleted: .deviceDeleted
        case .appDeleted: .appDeleted
        }
    }
}

private func end(_ ending: Ending, _ fixture: WatchFixture, at now: Timestamp) async throws {
    let (store, channel, device) = (fixture.store, fixture.base.first, fixture.base.device)
    switch ending {
    case .unregistered: _ = try await store.closeChannel(channel.id, device: device.serial, at: now)
    case .revoked, .failed:
        var event = fixture.news(9, ending == .revoked ? .channelClosed : .channelError(code: 503))
        event.acceptedAt = now
        _ = try await store.commit([.append(event, AppendRules())])
    case .deviceDeleted: _ = try await store.deleteDevice(device.serial, at: now)
    case .appDeleted:
        _ = try await store.deleteApp(device.appID, at: now)
        while try await !store.continueDeletions(at: now, limit: 500).isDone {}
    }
}

extension StoreCase {
    static let callbacks: [StoreCase] =
        Ending.allCases.map { ending in
            StoreCase("the end of a watched channel is called back once: \(ending)") { try await calledBack(ending, $0) }
        } + [
            StoreCase("for a deleted app no backend is pinged any more, and callbacks are made", deletedAppIsNotPinged),
            StoreCase("without a disconnect address no backend is called", withoutDisconnectAddress),
            StoreCase(
                "a failed callback is repeated at its time, under the same name, and is forgotten when it is dropped",
                callbackThatFailed),
        ]
}

private func calledBack(_ ending: Ending, _ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request(gone: "http://example.com/gone", secret: 4, id: "msg_x"))
    _ = try await fixture.put(
        fixture.request(on: fixture.base.second, ping: "http://other.example", due: WatchFixture.aMonth))
    let now = start.adding(seconds: 5)
    try await end(ending, fixture, at: now)
    try await end(ending, fixture, at: now.adding(seconds: 1))
    let call = try #require(try await fixture.lease(at: now).first)
    let callback = try #require(call.callback)
    #expect(callback.reason == ending.reason)
    #expect(callback.endedAt == now)
    #expect(callback.webhookID == "msg_x")
    #expect(callback.address.text == "http://example.com/gone")
    #expect(callback.sealed == Watch.Sealed(secret: [4], token: [4, 2]))
    #expect(callback.channel == fixture.base.first.serial)
    #expect(try await fixture.lease(at: now).isEmpty)
    #expect(try await fixture.store.record(.done, of: callback, end: fixture.end(call)))
    let left = try await fixture.lease(at: WatchFixture.aMonth).compactMap(\.callback)
    #expect(left.isEmpty)
}

private func withoutDisconnectAddress(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(fixture.request(on: fixture.base.second, gone: "http://example.com/gone"))
    #expect(try await fixture.store.removeWatch(of: fixture.base.second.serial))
    _ = try await fixture.store.deleteDevice(fixture.base.device.serial, at: start)
    #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
}

private func callbackThatFailed(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request(ping: nil, gone: "http://example.com/gone"))
    try await end(.unregistered, fixture, at: start)
    let call = try #require(try await fixture.lease(at: start).first)
    var callback = try #require(call.callback)
    let step = callback.machine.called(.answered(status: 500), endedAt: start, at: start, chance: 0)
    guard case .retry(let next) = step else { throw StoreFixture.Missing() }
    #expect(try await fixture.store.record(step, of: callback, end: fixture.end(call)))
    #expect(try await fixture.lease(at: next.adding(milliseconds: -1)).isEmpty)
    let again = try #require(try await fixture.lease(at: next).first)
    #expect(again.callback == callback)
    #expect(
        try await !fixture.store.record(.done, of: callback, end: fixture.end(call)), "the lease is another"
    )
    #expect(try await fixture.store.record(.givenUp, of: callback, end: fixture.end(again)))
    #expect(try await fixture.lease(at: WatchFixture.aMonth).isEmpty)
}

private func deletedAppIsNotPinged(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request(gone: "http://gone.example"))
    _ = try await fixture.put(fixture.request(on: fixture.base.second, ping: nil, gone: "http://gone.example"))
    _ = try await fixture.store.closeChannel(
        fixture.base.second.id, device: fixture.base.device.serial, at: start)
    let (_, channel) = try await fixture.addDevice(2, app: "com.example.other")
    _ = try await fixture.put(fixture.request(on: channel, ping: "http://other.example"))
    _ = try await fixture.store.deleteApp(fixture.base.device.appID, at: start)
    #expect(Set(try await fixture.due(at: start).map(\.peer)) == ["gone.example:80", "other.example:80"])
    while try await !fixture.store.continueDeletions(at: start, limit: 500).isDone {}
    let calls = try await fixture.drain(at: start)
    #expect(calls.compactMap(\.callback).count == 2)
    #expect(calls.compactMap(\.watch).map(\.channel) == [channel.serial])
}
