import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let requestEnds: [StoreCase] = [
        StoreCase("a request is due from its deadline on, until it has its result", requestIsDue),
        StoreCase("a request to a device with another user is due at once, and ends with a fault", providersUserChanges),
        StoreCase("no consumer waits for a request of a device with another user", consumersUserChanges),
        StoreCase("a request to a deleted device is due at once, and one of a deleted device is removed", deviceIsDeleted),
        StoreCase("a former server ends its requests as a deleted device does", serverIsRemoved),
        StoreCase("a finished request is remembered for its time by both clocks", finishedIsRemembered),
        StoreCase("finished requests are forgotten in steps, and no others", finishedAreForgotten),
        StoreCase("a request is cancelled once, and its id is remembered for a shorter time", cancelledIsRemembered),
        StoreCase("a limited number of ids of cancelled requests of a device is remembered", cancelledAreLimited),
    ]
}

private func pair(_ fixture: ServiceFixture) async throws -> (consumer: Device, provider: Device) {
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    return (consumer: phone, provider: tablet)
}

private func requestIsDue(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    let later = try await fixture.make(1, from: phone, to: tablet, ttl: 90)
    let sooner = try await fixture.make(2, from: phone, to: tablet, ttl: 60)
    func due(_ seconds: Int64, _ milliseconds: Int64 = 0, limit: Int = 9) async throws -> [ServiceRequestID] {
        let now = start.adding(seconds: seconds).adding(milliseconds: milliseconds)
        return try await store.dueRequests(at: now, limit: limit).map(\.id)
    }
    #expect(try await store.removeServiceProfile(of: tablet.serial))
    #expect(try await due(60, -1).isEmpty, "a provider that offers nothing any more has its requests still")
    #expect(try await due(60) == [sooner.id])
    #expect(try await due(90, -1) == [sooner.id])
    #expect(try await due(90) == [sooner.id, later.id], "the longest due first")
    #expect(try await due(90, limit: 1) == [sooner.id])
    #expect(try await store.dueRequests(at: start.adding(seconds: 60), limit: 9) == [sooner])
    // The store ends nothing by itself: a result counts after the deadline, too.
    let end = start.adding(seconds: 61)
    #expect(try await fixture.notify(.finished(sooner.serial, replyHash: [1], at: end), of: sooner, at: 11))
    #expect(try await due(90) == [later.id])
    #expect(try await fixture.notify(.finished(later.serial, replyHash: nil, at: end), of: later, at: 12))
    #expect(try await due(1_000_000).isEmpty)
}

private func providersUserChanges(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    let finished = try await fixture.make(1, from: phone, to: tablet)
    #expect(try await fixture.notify(.finished(finished.serial, replyHash: [1], at: start), of: finished, at: 11))
    var request = try await fixture.make(2, from: phone, to: tablet)
    #expect(try await store.dueRequests(at: start, limit: 9).isEmpty)
    try await fixture.signIn("bob", on: tablet)
    request.fault = .userMismatch
    #expect(try await store.dueRequests(at: start, limit: 9) == [request])
    #expect(try await store.serviceRequest(request.id) == request)
    #expect(try await store.serviceRequest(finished.id)?.fault == nil)
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == 1, "its consumer waits still")
    for step in [
        RequestStep.received(request.serial), .unwanted(request.serial),
        .finished(request.serial, replyHash: [1], at: start),
    ] { #expect(try await !fixture.notify(step, of: request, at: 12), "the server ends it") }
    #expect(try await fixture.notify(.finished(request.serial, replyHash: nil, at: start), of: request, at: 12))
    #expect(try await store.serviceRequest(request.id)?.state == .finished)
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == 0)
}

private func consumersUserChanges(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    var request = try await fixture.make(1, from: phone, to: tablet)
    try await fixture.signIn(nil, on: phone)
    request.isAbandoned = true
    #expect(try await store.dueRequests(at: start, limit: 9) == [request])
    #expect(try await store.serviceRequest(request.id) == request)
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == 0)
    #expect(try await store.unfinishedRequests(of: phone.serial, to: tablet.serial, limit: 9).isEmpty)
    try await fixture.signIn("ada", on: phone)
    #expect(try await store.serviceRequest(request.id) == request, "the user returns, and the request does not")
    for step in [
        RequestStep.received(request.serial), .unwanted(request.serial),
        .finished(request.serial, replyHash: [1], at: start),
    ] { #expect(try await !fixture.notify(step, of: request, at: 12)) }
    #expect(try await store.cancelRequest(request.serial, at: start))
    #expect(try await store.dueRequests(at: start, limit: 9).isEmpty)
}

private func deviceIsDeleted(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    try await fixture.offer(phone)
    var asked = try await fixture.make(1, from: phone, to: tablet)
    let asks = try await fixture.make(2, from: tablet, to: phone)
    let finished = try await fixture.make(3, from: tablet, to: phone)
    #expect(try await fixture.notify(.finished(finished.serial, replyHash: [1], at: start), of: finished, at: 11))
    _ = try await store.deleteDevice(tablet.serial, at: start)
    asked.fault = .applicationNotFound
    #expect(try await store.dueRequests(at: start, limit: 9) == [asked])
    #expect(try await store.serviceRequest(asks.id) == nil)
    #expect(try await !fixture.notify(.received(asks.serial), of: asks, at: 12))
    #expect(try await store.serviceRequest(finished.id)?.replyHash == [1], "it is remembered for its time")
    #expect(try await fixture.notify(.finished(asked.serial, replyHash: nil, at: start), of: asked, at: 13))
    #expect(try await store.dueRequests(at: start, limit: 9).isEmpty)
}

private func serverIsRemoved(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let phone = try await fixture.device(1)
    let server = try await fixture.device(2, of: nil)
    try await fixture.offer(phone, server)
    #expect(try await store.setClusterPlace(ClusterPlace(), of: server.id, app: server.app) == true)
    var asked = try await fixture.make(1, from: phone, to: server)
    let asks = try await fixture.make(2, from: server, to: phone)
    #expect(try await store.setClusterPlace(ClusterPlace(priority: 9), of: server.id, app: server.app) == true)
    #expect(try await store.dueRequests(at: start, limit: 9).isEmpty, "another place ends nothing")
    #expect(try await store.setClusterPlace(nil, of: server.id, app: server.app) == true)
    asked.fault = .applicationNotFound
    #expect(try await store.dueRequests(at: start, limit: 9) == [asked])
    #expect(try await store.serviceRequest(asks.id) == nil)
}

private func finishedIsRemembered(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    try await store.noteServed(500)
    let remembered = ServiceRequest.rememberedSeconds
    let request = try await fixture.make(1, from: phone, to: tablet)
    let long = try await fixture.make(2, from: phone, to: tablet, ttl: remembered + 1000)
    let (end, clocks) = (start.adding(seconds: 10), 500 + remembered + RetentionTime.lagSeconds)
    for (place, request) in [request, long].enumerated() {
        let step = RequestStep.finished(request.serial, replyHash: [1], at: end)
        #expect(try await fixture.notify(step, of: request, at: Int64(11 + place)))
    }
    func forgotten(_ now: Timestamp, served: Int64) async throws -> Int {
        try await store.forgetRequests(by: RetentionTime(now: now, served: served), limit: 9)
    }
    let last = end.adding(seconds: remembered)
    #expect(try await forgotten(last.adding(milliseconds: -1), served: clocks) == 0)
    #expect(try await forgotten(last, served: clocks - 1) == 0)
    #expect(try await forgotten(last, served: clocks) == 1)
    #expect(try await store.serviceRequest(request.id) == nil)
    // A deadline that is later than that counts instead.
    #expect(try await forgotten(long.expiresAt.adding(milliseconds: -1), served: clocks) == 0)
    #expect(try await forgotten(long.expiresAt, served: clocks) == 1)
    #expect(try await store.serviceRequest(long.id) == nil)
}

private func finishedAreForgotten(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    let unfinished = try await fixture.make(1, from: phone, to: tablet)
    for number in Int64(2)...4 {
        let request = try await fixture.make(number, from: phone, to: tablet)
        let step = RequestStep.finished(request.serial, replyHash: nil, at: start)
        #expect(try await fixture.notify(step, of: request, at: 10 + number))
    }
    let late = RetentionTime.uninterrupted(at: start.adding(seconds: 1_000_000))
    for count in [2, 1, 0] { #expect(try await store.forgetRequests(by: late, limit: 2) == count) }
    #expect(try await store.serviceRequest(unfinished.id) == unfinished)
    for number in Int64(2)...4 { #expect(try await store.serviceRequest(ServiceFixture.id(number)) == nil) }
    var again = ServiceFixture.request(20, from: phone, to: tablet)
    again.id = ServiceFixture.id(2)
    let made = ServiceFixture.made(again, try await fixture.parties(phone, tablet))
    #expect(try await store.commit([made]) == [.stored(replaced: nil)], "an id that was forgotten is free")
}

private func cancelledIsRemembered(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    var request = try await fixture.make(1, from: phone, to: tablet)
    let finished = try await fixture.make(2, from: phone, to: tablet)
    #expect(try await fixture.notify(.finished(finished.serial, replyHash: [1], at: start), of: finished, at: 11))
    #expect(try await !store.cancelRequest(finished.serial, at: start))
    #expect(try await store.cancelRequest(request.serial, at: start))
    #expect(try await !store.cancelRequest(request.serial, at: start))
    #expect(try await !store.cancelRequest(RequestSerial(999), at: start))
    request.state = .finished
    #expect(try await store.serviceRequest(request.id) == request)
    let asking = try await store.requestBeginning(request.id, by: phone.serial, to: tablet.id, of: tablet.appID)
    #expect(asking == .made(request))
    #expect(try await !fixture.notify(.finished(request.serial, replyHash: [1], at: start), of: request, at: 12))
    #expect(try await store.unfinishedRequestCount(of: phone.serial) == 0)
    let end = start.adding(seconds: ServiceRequest.undeliveredSeconds)
    #expect(try await store.forgetRequests(by: .uninterrupted(at: end.adding(milliseconds: -1)), limit: 9) == 0)
    #expect(try await store.forgetRequests(by: .uninterrupted(at: end), limit: 9) == 1)
    #expect(try await store.serviceRequest(request.id) == nil)
    #expect(try await store.serviceRequest(finished.id) != nil)
}

private func cancelledAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = try await pair(fixture)
    let watch = try await fixture.device(3)
    let other = try await fixture.make(5000, from: watch, to: tablet)
    #expect(try await store.cancelRequest(other.serial, at: start))
    let oldest = try await fixture.make(1, from: phone, to: tablet)
    #expect(try await store.cancelRequest(oldest.serial, at: start))
    let parties = try await fixture.parties(phone, tablet)
    let most = Int64(ServiceRequest.undeliveredOfConsumer)
    for first in stride(from: 2, through: most + 1, by: 100) {
        let numbers = first..<min(first + 100, most + 2)
        _ = try await store.commit(
            numbers.map { ServiceFixture.made(ServiceFixture.request($0, from: phone, to: tablet), parties) })
        #expect(try await store.serviceRequest(oldest.id) != nil, "as many as may be are not yet there")
        let cancelled = try await atOnce(numbers.count) { place in
            try await store.cancelRequest(RequestSerial(first + Int64(place)), at: start.adding(seconds: 1))
        }
        #expect(cancelled.allSatisfy { $0 })
    }
    #expect(try await store.serviceRequest(oldest.id) == nil)
    for number in Int64(2)...most + 1 { #expect(try await store.serviceRequest(ServiceFixture.id(number)) != nil) }
    #expect(try await store.serviceRequest(other.id) != nil, "each consumer has its own")
}
