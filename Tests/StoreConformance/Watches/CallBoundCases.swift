import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let callBounds: [StoreCase] = [
        StoreCase("a device, and an app, has a limited number of watches", watchesAreLimited),
        StoreCase(
            "of the callbacks that wait for one peer, and for one app, the oldest are dropped",
            callbacksAreLimited),
        StoreCase("a queue exists as long as it contains a call", queueIsThereWhileACallStandsInIt),
    ]
}

private func watchesAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (_, other) = try await fixture.addDevice(2, app: "com.example.app")
    let third = try await StoreFixture.open(3, of: fixture.base.device, in: fixture.store)
    func put(_ channel: PushChannel, _ limits: WatchLimits) async throws -> PutWatchResult {
        var request = try fixture.request(on: channel)
        request.limits = limits
        return try await fixture.store.putWatch(request, at: start)
    }
    let limits = WatchLimits(perDevice: 2, perApp: 3)
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(fixture.request(on: fixture.base.second, ping: nil, gone: "http://example.com"))
    #expect(try await put(third, limits) == .tooManyOfDevice)
    guard case .put(_, isNew: false) = try await put(fixture.base.first, limits) else {
        throw StoreFixture.Missing()
    }
    _ = try await fixture.put(fixture.request(on: other))
    #expect(try await put(third, WatchLimits(perDevice: 9, perApp: 3)) == .tooManyOfApp)
    #expect(try await fixture.store.removeWatch(of: other.serial))
    guard case .put = try await put(third, WatchLimits(perDevice: 9, perApp: 3)) else {
        throw StoreFixture.Missing()
    }
    // Watches that end with their channels are not counted either.
    _ = try await fixture.store.deleteDevice(fixture.base.device.serial, at: start)
    guard case .put(_, isNew: true) = try await put(other, WatchLimits(perDevice: 1, perApp: 1)) else {
        throw StoreFixture.Missing()
    }
}

private func callbacksAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores, callbacks: CallbackLimits(perApp: 6, perPeer: 3))
    func end(_ number: Int, _ address: String) async throws {
        let channel = try await StoreFixture.open(UInt64(number), of: fixture.base.device, in: fixture.store)
        _ = try await fixture.put(fixture.request(on: channel, ping: nil, gone: address, id: "msg_\(number)"))
        _ = try await fixture.store.closeChannel(
            channel.id, device: fixture.base.device.serial, at: start.adding(seconds: Int64(number)))
    }
    func waiting() async throws -> [String] {
        var names: [String] = []
        for call in try await fixture.drain(at: start.adding(seconds: 100)) {
            if let callback = call.callback { names.append(callback.webhookID) }
        }
        return names.sorted()
    }
    for number in 11...12 { try await end(number, "http://two.example") }
    for number in 13...17 { try await end(number, "http://one.example") }
    #expect(try await waiting() == ["msg_11", "msg_12", "msg_15", "msg_16", "msg_17"])
    // There is space again when they were answered.
    for number in 21...27 { try await end(number, "http://host\(number).example") }
    #expect(try await waiting() == (22...27).map { "msg_\($0)" })
}

private func queueIsThereWhileACallStandsInIt(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    var record = try fixture.record(call, due: start)
    record.end.health = EndpointHealth(isOnTrial: true, failures: 9)
    #expect(try await fixture.store.record(record))
    for leave in 0..<3 {
        switch leave {
        case 0: _ = try await fixture.put(fixture.request(ping: "http://other.example"))
        case 1: _ = try await fixture.put(fixture.request(ping: nil, gone: "http://other.example"))
        default: #expect(try await fixture.store.removeWatch(of: fixture.base.first.serial))
        }
        _ = try await fixture.put(fixture.request())
        #expect(
            try await fixture.lease(at: start.adding(seconds: Int64(60 * leave + 1))).map(\.health.failures) == [0]
        )
    }
}
