import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let requestRaces: [StoreCase] = [
        StoreCase("of concurrent requests with one id, one counts", oneIdIsMadeOnce),
        StoreCase("of concurrent results and cancellations, one counts", oneResultCounts),
        StoreCase("no request that is created beside a change of the user outlives it", noRequestOutlivesItsUser),
    ]
}

private func oneIdIsMadeOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    let parties = try await fixture.parties(phone, tablet)
    let requests = (Int64(1)...8).map { number in
        var request = ServiceFixture.request(number, from: phone, to: tablet)
        request.id = ServiceFixture.id(99)
        return request
    }
    let results = try await atOnce(requests.count) { place in
        try await store.commit([ServiceFixture.made(requests[place], parties)])[0]
    }
    let stored = results.indices.filter { results[$0] == .stored(replaced: nil) }
    #expect(stored.count == 1 && results.filter { $0 == .originGone }.count == 7)
    let first = try #require(stored.first)
    #expect(try await store.serviceRequest(ServiceFixture.id(99)) == requests[first])
    let waiting = try await store.waiting(device: tablet.serial, after: 0, limit: 9, bytes: 10_000, at: start)
    #expect(waiting?.map(\.id) == [requests[first].envelope])
}

private func oneResultCounts(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    for round in Int64(0)..<10 {
        let request = try await fixture.make(round * 100 + 1, from: phone, to: tablet)
        let counted = try await atOnce(8) { place in
            if place % 4 == 3 { return try await store.cancelRequest(request.serial, at: start) }
            let hash = place % 4 == 2 ? nil : [UInt8(place)]
            let step = RequestStep.finished(request.serial, replyHash: hash, at: start)
            return try await fixture.notify(step, of: request, at: round * 100 + 2 + Int64(place))
        }
        let winners = counted.indices.filter { counted[$0] }
        #expect(winners.count == 1)
        let winner = try #require(winners.first)
        let finished = try #require(try await store.serviceRequest(request.id))
        #expect(finished.state == .finished)
        #expect(finished.replyHash == (winner % 4 < 2 ? [UInt8(winner)] : nil))
    }
}

private func noRequestOutlivesItsUser(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    try await fixture.offer(tablet)
    let parties = try await fixture.parties(phone, tablet)
    var made: [ServiceRequestID] = []
    for round in Int64(0)..<5 {
        let results = try await atOnce(9) { place in
            if place == 4 {
                try await fixture.signIn("bob", on: phone)
                return false
            }
            let request = ServiceFixture.request(round * 100 + Int64(place) + 1, from: phone, to: tablet)
            return try await store.commit([ServiceFixture.made(request, parties)])[0] == .stored(replaced: nil)
        }
        for place in results.indices where results[place] {
            made.append(ServiceFixture.id(round * 100 + Int64(place) + 1))
        }
        #expect(try await store.unfinishedRequestCount(of: phone.serial) == 0)
        try await fixture.signIn("ada", on: phone)
    }
    for id in made { #expect(try await store.serviceRequest(id)?.isAbandoned == true) }
    #expect(try await Set(store.dueRequests(at: start, limit: 100).map(\.id)) == Set(made))
}
