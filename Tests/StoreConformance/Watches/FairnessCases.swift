import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let fairness: [StoreCase] = [
        StoreCase("a peer with many due calls hides no peer behind it", whoHasMuchDueHidesNobody),
        StoreCase("a peer that one device keeps busy is called for the others", busyPeerIsCalledForOthers),
        StoreCase("each app, each kind and each trust has its own first calls", eachQueueHasItsFirstCalls),
        StoreCase(
            "the result of a call applies to all calls of the app to its peer, and to no other app",
            callTellsOfItsPeer),
    ]
}

private func whoHasMuchDueHidesNobody(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (quiet, channel) = try await fixture.addDevice(2, app: "com.example.app")
    for number in 3...60 {
        let channel = try await StoreFixture.open(
            UInt64(number), of: fixture.base.device, in: fixture.store, limit: 100)
        _ = try await fixture.put(
            fixture.request(
                on: channel, ping: number < 30 ? "http://host\(number).example" : "http://many.example:\(number)"
            ))
    }
    _ = try await fixture.put(
        fixture.request(on: channel, ping: "http://quiet.example", due: start.adding(seconds: 9)))
    let now = start.adding(seconds: 10)
    #expect(try await !fixture.due(at: now, limit: 8).contains { $0.device == quiet.serial })
    var crowd = BusyPeers()
    crowd.devices = [fixture.base.device.serial]
    #expect(try await fixture.due(at: now, besides: crowd, limit: 1).map(\.peer) == ["quiet.example:80"])
    crowd = BusyPeers()
    crowd.hosts = ["many.example"]
    crowd.peers = Set((3..<30).map { "host\($0).example:80" })
    #expect(try await fixture.due(at: now, besides: crowd, limit: 1).map(\.peer) == ["quiet.example:80"])
}

private func busyPeerIsCalledForOthers(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (other, channel) = try await fixture.addDevice(2, app: "com.example.app")
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(fixture.request(on: channel, due: start.adding(seconds: 1)))
    var crowd = BusyPeers()
    crowd.devices = [fixture.base.device.serial]
    let now = start.adding(seconds: 2)
    #expect(try await fixture.due(at: now).map(\.device) == [fixture.base.device.serial])
    #expect(try await fixture.due(at: now, besides: crowd).map(\.device) == [other.serial])
    crowd.devices.insert(other.serial)
    #expect(try await fixture.due(at: now, besides: crowd).isEmpty)
}

private func eachQueueHasItsFirstCalls(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (_, foreign) = try await fixture.addDevice(2, app: "com.example.other")
    _ = try await fixture.put(fixture.request(ping: "http://proven.example"))
    let call = try #require(try await fixture.lease(at: start).first)
    #expect(try await fixture.store.record(fixture.record(call, due: start.adding(seconds: 4))))
    for number in 3...9 {
        let channel = try await StoreFixture.open(UInt64(number), of: fixture.base.device, in: fixture.store)
        _ = try await fixture.put(
            fixture.request(on: channel, ping: "http://a\(number).example", gone: "http://b\(number).example"))
        if number > 5 {
            _ = try await fixture.store.closeChannel(
                channel.id, device: fixture.base.device.serial, at: start.adding(seconds: 5))
        }
    }
    _ = try await fixture.put(fixture.request(on: foreign, ping: "http://c.example", due: start.adding(seconds: 6)))
    let due = try await fixture.due(at: start.adding(seconds: 7), limit: 1)
    #expect(due.map(\.peer) == ["a3.example:80", "proven.example:80", "b6.example:80", "c.example:80"])
    #expect(due.map(\.isOnTrial) == [true, false, true, true])
    #expect(due.map(\.kind) == [.ping, .ping, .callback, .ping])
}

private func callTellsOfItsPeer(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    let (_, foreign) = try await fixture.addDevice(2, app: "com.example.other")
    _ = try await fixture.put(fixture.request())
    _ = try await fixture.put(
        fixture.request(on: fixture.base.second, ping: nil, gone: "http://example.com/gone"))
    _ = try await fixture.put(fixture.request(on: foreign))
    let call = try #require(
        try await fixture.lease(at: start).first { $0.due.app == fixture.base.device.app })
    var record = try fixture.record(call, due: start.adding(seconds: 1))
    record.end.health = EndpointHealth(isOnTrial: true, failures: 5)
    record.end.peerRestsUntil = start.adding(seconds: 50)
    #expect(try await fixture.store.record(record))
    // The queue of callbacks is made after it.
    _ = try await fixture.store.closeChannel(
        fixture.base.second.id, device: fixture.base.device.serial, at: start.adding(seconds: 2))
    let resting = start.adding(milliseconds: 49_999)
    #expect(try await fixture.due(at: resting).map(\.app) == [foreign.app])
    let after = try await fixture.lease(at: start.adding(seconds: 50))
    #expect(after.count == 3)
    #expect(after.filter { $0.due.app != foreign.app }.map(\.health.failures) == [5, 5])
    #expect(after.filter { $0.due.app == foreign.app }.map(\.health.failures) == [0])
    // The next one answers.
    let again = try #require(after.first { $0.watch != nil && $0.due.app != foreign.app })
    #expect(try await fixture.store.record(fixture.record(again, due: start.adding(seconds: 51))))
    let well = try await fixture.due(at: start.adding(seconds: 99))
    #expect(well.filter { $0.app != foreign.app }.map(\.isOnTrial) == [false, false])
}
