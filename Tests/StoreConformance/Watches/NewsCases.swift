import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let news: [StoreCase] = [
        StoreCase(
            "an event is written together with its cause, and replaces a waiting event",
            newsIsWrittenWithItsCause),
        StoreCase("an event that does not count any more is not delivered", newsThatDoesNotCount),
        StoreCase(
            "an event of one channel does not affect another's, and ends with its channel", newsOfOneChannel),
        StoreCase("a backend that calls the server itself is believed, once", backendSpeaksForItself),
        StoreCase("an event that was delivered or replaced is not kept", newsThatWasDeliveredOrReplacedIsNotKept),
        StoreCase("a result of a ping does not count after a call of the backend in the same commit", resultAfterBackend),
        StoreCase("a backend is not believed after its ping recovered in the same commit", backendAfterResult),
        StoreCase("of two results under one lease in one commit, the first counts", twoResultsOfOneLease),
    ]
}

private func newsIsWrittenWithItsCause(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let first = try #require(try await fixture.lease(at: start).first)
    let failed = fixture.news(1, .pingFailed(.noConnection))
    let due = start.adding(seconds: 60)
    #expect(
        try await fixture.notify(failed, .pinged(fixture.record(first, notified: .noConnection, due: due)))
            == .stored(replaced: nil))
    #expect(try await fixture.base.waiting() == [failed])
    #expect(try await fixture.store.watch(of: fixture.base.first.serial)?.machine.notified == .noConnection)

    let message = fixture.base.envelope(2)
    _ = try await fixture.base.append(message)
    let second = try #require(try await fixture.lease(at: due).first)
    let recovered = fixture.news(3, .recovered)
    #expect(
        try await fixture.notify(recovered, .pinged(fixture.record(second, due: due.adding(seconds: 60))))
            == .stored(replaced: failed.id))
    #expect(try await fixture.base.waiting() == [message, recovered])
    #expect(try await fixture.store.waitingCount(device: fixture.base.device.serial, at: start) == 2)
}

private func newsThatDoesNotCount(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    let record = try fixture.record(call, notified: .noConnection, due: start.adding(seconds: 60))
    _ = try await fixture.put(fixture.request())
    let failed = fixture.news(1, .pingFailed(.noConnection))
    #expect(try await fixture.notify(failed, .pinged(record)) == .originGone)
    #expect(try await fixture.notify(failed, .vouchedFor(fixture.base.first.serial)) == .originGone)
    #expect(try await fixture.notify(failed, nil) == .originGone)
    #expect(try await fixture.base.waiting().isEmpty)
    #expect(try await fixture.lease(at: start).count == 1, "the lease has ended all the same")
}

private func newsOfOneChannel(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request(ping: "http://one.example"))
    _ = try await fixture.put(fixture.request(on: fixture.base.second, ping: "http://two.example"))
    for (index, call) in try await fixture.lease(at: start).enumerated() {
        let channel = call.watch?.channel == fixture.base.first.serial ? fixture.base.first : fixture.base.second
        let record = try fixture.record(call, notified: .noConnection, due: start.adding(seconds: 60))
        _ = try await fixture.notify(
            fixture.news(Int64(index + 1), .pingFailed(.noConnection), on: channel), .pinged(record))
    }
    #expect(try await fixture.base.waiting().count == 2)
    _ = try await fixture.store.closeChannel(
        fixture.base.first.id, device: fixture.base.device.serial, at: start)
    #expect(try await fixture.base.waiting().map(\.origin.key) == [.channel(fixture.base.second.serial)])
}

private func backendSpeaksForItself(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    let call = try #require(try await fixture.lease(at: start).first)
    let record = try fixture.record(call, notified: .tokenLost, due: start.adding(seconds: 60))
    _ = try await fixture.notify(fixture.news(1, .pingFailed(.tokenLost)), .pinged(record))
    let change = Effect.vouchedFor(fixture.base.first.serial)
    #expect(try await fixture.notify(fixture.news(2, .recovered), change) != .originGone)
    #expect(try await fixture.notify(fixture.news(3, .recovered), change) == .originGone)
    #expect(try await fixture.base.waiting().map(\.kind) == [.recovered])
}

private func newsThatWasDeliveredOrReplacedIsNotKept(_ stores: any StoreMaker) async throws {
    let fixture = try await WatchFixture(stores)
    _ = try await fixture.put(fixture.request())
    var notified: PingFailure? = .noConnection
    for position in 1...20 {
        let now = start.adding(seconds: Int64(position) * 60)
        let call = try #require(try await fixture.lease(at: now).first)
        let record = try fixture.record(call, notified: notified, due: now)
        _ = try await fixture.notify(
            fixture.news(Int64(position), notified.map { .pingFailed($0) } ?? .recovered), .pinged(record))
        notified = notified == nil ? .noConnection : nil
    }
    let last = try #require(try await fixture.base.waiting().first)
    let finalOutcome = FinalOutcome(.acknowledged, code: 100, at: start)
    let settle = InboxOperation.finish(last.id, device: fixture.base.device.serial, finalOutcome)
    #expect(try await fixture.store.commit([settle, settle]) == [.finished, .notWaiting])
    #expect(try await fixture.base.waiting().isEmpty)
}

/// A watch whose channel was notified that its backend fails.
private struct FailedWatch {
    static let due = start.adding(seconds: 60)
    static let next = due.adding(seconds: 60)

    let fixture: WatchFixture
    let news: Envelope
    /// The next ping, which is leased.
    let call: LeasedCall

    init(_ stores: any StoreMaker) async throws {
        fixture = try await WatchFixture(stores)
        _ = try await fixture.put(fixture.request())
        let first = try #require(try await fixture.lease(at: start).first)
        news = fixture.news(1, .pingFailed(.noConnection))
        _ = try await fixture.notify(news, .pinged(fixture.record(first, notified: .noConnection, due: Self.due)))
        call = try #require(try await fixture.lease(at: Self.due).first)
    }

    func recovered(_ position: Int64, _ effect: Effect) -> InboxOperation {
        .append(fixture.news(position, .recovered), AppendRules(topic: "watch:ping", effects: [effect]))
    }

    /// The result of a ping that was answered, or failed.
    func result(notified: PingFailure? = nil) throws -> PingRecord {
        var record = try fixture.record(call, notified: notified, due: Self.next, at: Self.due)
        record.end.health = EndpointHealth(isOnTrial: true, failures: 3)
        return record
    }

    var notified: PingFailure? {
        get async throws { try await fixture.store.watch(of: fixture.base.first.serial)?.machine.notified }
    }
}

private func resultAfterBackend(_ stores: any StoreMaker) async throws {
    let watch = try await FailedWatch(stores)
    let fixture = watch.fixture
    let vouched = watch.recovered(2, .vouchedFor(fixture.base.first.serial))
    let pinged = try watch.recovered(3, .pinged(watch.result(notified: .tokenLost)))
    #expect(try await fixture.store.commit([vouched, pinged]) == [.stored(replaced: watch.news.id), .originGone])
    #expect(try await watch.notified == nil)
    // The lease has ended, and the trust of the peer is stored.
    let again = try await fixture.lease(at: FailedWatch.due)
    #expect(again.map(\.health.failures) == [3])
}

private func backendAfterResult(_ stores: any StoreMaker) async throws {
    let watch = try await FailedWatch(stores)
    let fixture = watch.fixture
    let pinged = try watch.recovered(2, .pinged(watch.result()))
    let vouched = watch.recovered(3, .vouchedFor(fixture.base.first.serial))
    #expect(try await fixture.store.commit([pinged, vouched]) == [.stored(replaced: watch.news.id), .originGone])
    #expect(try await fixture.base.waiting().map(\.id.position) == [2])
    #expect(try await fixture.lease(at: FailedWatch.next).count == 1)
}

private func twoResultsOfOneLease(_ stores: any StoreMaker) async throws {
    let watch = try await FailedWatch(stores)
    let fixture = watch.fixture
    let first = try watch.recovered(2, .pinged(watch.result()))
    let second = try watch.recovered(3, .pinged(watch.result(notified: .tokenLost)))
    #expect(try await fixture.store.commit([first, second]) == [.stored(replaced: watch.news.id), .originGone])
    #expect(try await watch.notified == nil)
    #expect(try await fixture.lease(at: FailedWatch.next).count == 1)
}
