import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let requests: [StoreCase] = [
        StoreCase("a request is stored with its envelope, once", requestIsMade),
        StoreCase("a request counts only between the users that it was allowed for", requestIsBetweenUsers),
        StoreCase("each step of a request counts once, and none after its result", stepsCountOnce),
        StoreCase("a request that does not fit into the inbox of its provider is not stored", requestNeedsRoom),
        StoreCase("one consumer has a quota in the inbox of a provider", consumerHasShare),
        StoreCase("a device has a limited number of requests without a result", unfinishedAreLimited),
    ]
}

private func requestIsMade(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    let id = ServiceFixture.id(1)
    func asking(_ caller: Device, _ provider: Device, of app: Device) async throws -> RequestBeginning {
        try await store.requestBeginning(id, by: caller.serial, to: provider.id, of: app.appID)
    }
    let query = ServiceQuery(app: tablet.appID)
    let found = try #require(try await store.serviceProviders(for: phone.serial, query, limit: 1))
    #expect(found.providers.map(\.id) == [tablet.id])
    #expect(try await asking(phone, tablet, of: tablet) == .new(found))
    let elsewhere = try await fixture.device(3, app: "com.example.other")
    let nothing = RequestBeginning.new(ServiceReach(caller: found.caller, providers: []))
    #expect(try await asking(phone, tablet, of: elsewhere) == nothing, "it is a device of another app")
    #expect(try await asking(phone, phone, of: phone) == nothing, "it is the device itself")
    #expect(try await asking(elsewhere, tablet, of: tablet) == nothing, "it is in no realm with the other app")
    #expect(try await asking(fixture.base.device, tablet, of: tablet) == .new(nil), "it may not call any device")
    #expect(try await store.serviceRequest(id) == nil)
    let request = try await fixture.make(1, from: phone, to: tablet)
    #expect(request.state == .waiting && !request.isUnwanted && !request.isAbandoned && request.fault == nil)
    #expect(try await store.serviceRequest(id) == request)
    #expect(try await store.serviceRequest(ServiceFixture.id(2)) == nil)
    // The id names the request for every device: the caller compares the consumer.
    for caller in [phone, elsewhere, fixture.base.device] {
        #expect(try await asking(caller, tablet, of: tablet) == .made(request))
    }
    #expect(try await asking(phone, fixture.base.device, of: elsewhere) == .made(request), "for any named device")
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == 1)
    #expect(try await store.unfinishedRequestCount(of: tablet.serial) == 0)
    #expect(try await store.unfinishedRequests(of: phone.serial, to: tablet.serial, limit: 9) == [request])
    #expect(try await store.unfinishedRequests(of: tablet.serial, to: phone.serial, limit: 9).isEmpty)
    #expect(try await store.unfinishedRequests(of: phone.serial, to: phone.serial, limit: 9).isEmpty)
    // The same id again, in an envelope of its own.
    var again = ServiceFixture.request(2, from: phone, to: tablet)
    again.id = id
    let repeated = ServiceFixture.made(again, try await fixture.parties(phone, tablet))
    #expect(try await store.commit([repeated]) == [.originGone])
    #expect(try await store.serviceRequest(id) == request)
    let waiting = try #require(
        try await store.waiting(device: tablet.serial, after: 0, limit: 9, bytes: 10_000, at: start))
    #expect(waiting.map(\.id) == [request.envelope])
    #expect(waiting.map(\.origin) == [request.origin])
    for number in Int64(3)...4 { try await fixture.make(number, from: phone, to: tablet) }
    #expect(try await store.unfinishedRequests(of: phone.serial, to: tablet.serial, limit: 2).count == 2)
}

private func requestIsBetweenUsers(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    let before = try await fixture.parties(phone, tablet)
    let made = ServiceFixture.made(ServiceFixture.request(1, from: phone, to: tablet), before)
    func isRefused() async throws -> Bool {
        let result = try await store.commit([made])[0]
        let request = try await store.serviceRequest(ServiceFixture.id(1))
        return result == .originGone && request == nil
    }
    try await fixture.signIn("bob", on: phone)
    #expect(try await isRefused(), "the consumer has another user")
    try await fixture.signIn("ada", on: phone)
    try await fixture.signIn("bob", on: tablet)
    try await fixture.offer(tablet)
    #expect(try await isRefused(), "the provider has another user")
    try await fixture.signIn("ada", on: tablet)
    #expect(try await isRefused(), "the provider provides nothing")
    try await fixture.offer(tablet)
    #expect(try await store.setClusterPlace(ClusterPlace(), of: phone.id, app: phone.app) == true)
    #expect(try await isRefused(), "the consumer is a server")
    #expect(try await store.setClusterPlace(nil, of: phone.id, app: phone.app) == true)
    #expect(try await store.commit([made]) == [.stored(replaced: nil)])
    #expect(try await store.waitingCount(device: tablet.serial, at: start) == 1)
}

private func stepsCountOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    var request = try await fixture.make(1, from: phone, to: tablet)
    let serial = request.serial
    #expect(try await fixture.notify(.received(serial), of: request, at: 11))
    request.state = .received
    #expect(try await store.serviceRequest(request.id) == request)
    #expect(try await !fixture.notify(.received(serial), of: request, at: 12))
    #expect(try await fixture.notify(.unwanted(serial), of: request, at: 13))
    request.isUnwanted = true
    #expect(try await store.serviceRequest(request.id) == request)
    #expect(try await !fixture.notify(.unwanted(serial), of: request, at: 14))
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == 1)
    #expect(try await fixture.notify(.finished(serial, replyHash: [5], at: start), of: request, at: 15))
    request.state = .finished
    request.replyHash = [5]
    #expect(try await store.serviceRequest(request.id) == request)
    for step in [
        RequestStep.finished(serial, replyHash: [6], at: start), .finished(serial, replyHash: nil, at: start),
        .received(serial), .unwanted(serial),
    ] { #expect(try await !fixture.notify(step, of: request, at: 16)) }
    #expect(try await store.serviceRequest(request.id) == request)
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == 0)
    #expect(try await store.unfinishedRequests(of: phone.serial, to: tablet.serial, limit: 9).isEmpty)
    // A request that did not count left no envelope.
    #expect(try await store.waitingCount(device: phone.serial, at: start) == 2)
    #expect(try await store.waitingCount(device: tablet.serial, at: start) == 2)
}

private func requestNeedsRoom(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores, InboxLimits(envelopes: 1))
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    let first = try await fixture.make(1, from: phone, to: tablet)
    let parties = try await fixture.parties(phone, tablet)
    let second = ServiceFixture.made(ServiceFixture.request(2, from: phone, to: tablet), parties)
    #expect(try await store.commit([second]) == [.full])
    #expect(try await store.serviceRequest(ServiceFixture.id(2)) == nil)
    #expect(try await store.unfinishedRequests(of: phone.serial, to: tablet.serial, limit: 9) == [first])
    let settle = InboxOperation.finish(first.envelope, device: tablet.serial, FinalOutcome(.acknowledged, at: start))
    #expect(try await store.commit([settle, second]) == [.finished, .stored(replaced: nil)])
}

private func consumerHasShare(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores, InboxLimits(envelopes: 20))
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let watch = try await fixture.device(3)
    try await fixture.offer(tablet)
    let parties = try await fixture.parties(phone, tablet)
    func make(_ number: Int64, from consumer: Device) async throws -> InboxResult {
        let request = ServiceFixture.request(number, from: consumer, to: tablet)
        return try await store.commit([ServiceFixture.made(request, parties, sharing: true)])[0]
    }
    for number in Int64(1)...2 { #expect(try await make(number, from: phone) == .stored(replaced: nil)) }
    #expect(try await make(3, from: phone) == .quotaFull, "its quota is two of twenty")
    #expect(try await store.serviceRequest(ServiceFixture.id(3)) == nil)
    #expect(try await make(4, from: watch) == .stored(replaced: nil))
    let first = ServiceFixture.request(1, from: phone, to: tablet)
    let settle = InboxOperation.finish(first.envelope, device: tablet.serial, FinalOutcome(.acknowledged, at: start))
    #expect(try await store.commit([settle]) == [.finished])
    #expect(try await make(3, from: phone) == .stored(replaced: nil))
    #expect(try await make(5, from: phone) == .quotaFull)
}

private func unfinishedAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let watch = try await fixture.device(3)
    try await fixture.offer(tablet)
    let parties = try await fixture.parties(phone, tablet)
    let most = Int64(ServiceRequest.mostOfConsumer)
    for first in stride(from: 1, to: most, by: 111) {
        let numbers = first..<min(first + 111, most)
        let results = try await store.commit(
            numbers.map { ServiceFixture.made(ServiceFixture.request($0, from: phone, to: tablet), parties) })
        #expect(results.allSatisfy { $0 == .stored(replaced: nil) })
    }
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == Int(most) - 1)
    let results = try await atOnce(4) { number in
        let request = ServiceFixture.request(most + Int64(number), from: phone, to: tablet)
        return try await store.commit([ServiceFixture.made(request, parties)])[0]
    }
    #expect(results.filter { $0 == .stored(replaced: nil) }.count == 1)
    #expect(results.filter { $0 == .originGone }.count == 3)
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == Int(most))
    try await fixture.make(2000, from: watch, to: tablet)
    let first = ServiceFixture.request(1, from: phone, to: tablet)
    #expect(try await fixture.notify(.finished(first.serial, replyHash: [1], at: start), of: first, at: 2001))
    try await fixture.make(2002, from: phone, to: tablet)
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == Int(most))
}
