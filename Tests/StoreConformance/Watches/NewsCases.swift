import CarillonCore
import CarillonWire
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let news: [StoreCase] = [
        StoreCase(
            "news is written in one with what it tells of, and takes the place of news that waits",
            newsIsWrittenWithItsCause),
        StoreCase("news that does not count any more is not told", newsThatDoesNotCount),
        StoreCase(
            "news of one channel leaves another's alone, and ends with its channel", newsOfOneChannel),
        StoreCase("a back end that speaks for itself is believed, once", backEndSpeaksForItself),
        StoreCase("news that was delivered or replaced is not kept", newsThatWasDeliveredOrReplacedIsNotKept),
    ]
}

private func newsIsWrittenWithItsCause(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.wish())
    let first = try #require(try await fixture.lease(at: start).first)
    let failed = fixture.news(1, .pingFailed(.noConnection))
    let due = start.adding(seconds: 60)
    #expect(
        try await fixture.tell(failed, .pinged(fixture.record(first, told: .noConnection, due: due)))
            == .stored(replaced: nil))
    #expect(try await fixture.base.waiting() == [failed])
    #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.machine.told == .noConnection)

    let message = fixture.base.envelope(2)
    _ = try await fixture.base.append(message)
    let second = try #require(try await fixture.lease(at: due).first)
    let recovered = fixture.news(3, .recovered)
    #expect(
        try await fixture.tell(recovered, .pinged(fixture.record(second, due: due.adding(seconds: 60))))
            == .stored(replaced: failed.id))
    #expect(try await fixture.base.waiting() == [message, recovered])
    #expect(try await fixture.store.waitingCount(device: fixture.base.device.serial, at: start) == 2)
}

private func newsThatDoesNotCount(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.wish())
    let call = try #require(try await fixture.lease(at: start).first)
    let record = try fixture.record(call, told: .noConnection, due: start.adding(seconds: 60))
    _ = try await fixture.put(fixture.wish())
    let failed = fixture.news(1, .pingFailed(.noConnection))
    #expect(try await fixture.tell(failed, .pinged(record)) == .originGone)
    #expect(try await fixture.tell(failed, .vouchedFor(fixture.base.first.serial)) == .originGone)
    #expect(try await fixture.tell(failed, nil) == .originGone)
    #expect(try await fixture.base.waiting().isEmpty)
    #expect(try await fixture.lease(at: start).count == 1, "the lease has ended all the same")
}

private func newsOfOneChannel(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.wish(ping: "http://one.example"))
    _ = try await fixture.put(fixture.wish(on: fixture.base.second, ping: "http://two.example"))
    for (index, call) in try await fixture.lease(at: start).enumerated() {
        let channel = call.watch?.channel == fixture.base.first.serial ? fixture.base.first : fixture.base.second
        let record = try fixture.record(call, told: .noConnection, due: start.adding(seconds: 60))
        _ = try await fixture.tell(
            fixture.news(Int64(index + 1), .pingFailed(.noConnection), on: channel), .pinged(record))
    }
    #expect(try await fixture.base.waiting().count == 2)
    _ = try await fixture.store.closeChannel(
        fixture.base.first.id, device: fixture.base.device.serial, at: start)
    #expect(try await fixture.base.waiting().map(\.origin.key) == [.channel(fixture.base.second.serial)])
}

private func backEndSpeaksForItself(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.wish())
    let call = try #require(try await fixture.lease(at: start).first)
    let record = try fixture.record(call, told: .tokenLost, due: start.adding(seconds: 60))
    _ = try await fixture.tell(fixture.news(1, .pingFailed(.tokenLost)), .pinged(record))
    let change = Effect.vouchedFor(fixture.base.first.serial)
    #expect(try await fixture.tell(fixture.news(2, .recovered), change) != .originGone)
    #expect(try await fixture.tell(fixture.news(3, .recovered), change) == .originGone)
    #expect(try await fixture.base.waiting().map(\.kind) == [.recovered])
}

private func newsThatWasDeliveredOrReplacedIsNotKept(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.wish())
    var told: PingFailure? = .noConnection
    for position in 1...20 {
        let now = start.adding(seconds: Int64(position) * 60)
        let call = try #require(try await fixture.lease(at: now).first)
        let record = try fixture.record(call, told: told, due: now)
        _ = try await fixture.tell(
            fixture.news(Int64(position), told.map { .pingFailed($0) } ?? .recovered), .pinged(record))
        told = told == nil ? .noConnection : nil
    }
    let last = try #require(try await fixture.base.waiting().first)
    let settlement = Settlement(.acknowledged, code: 100, at: start)
    let settle = InboxOperation.settle(last.id, device: fixture.base.device.serial, settlement)
    #expect(try await fixture.store.commit([settle, settle]) == [.settled, .notWaiting])
    #expect(try await fixture.base.waiting().isEmpty)
}
