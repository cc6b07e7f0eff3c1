import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let ending: [StoreCase] = [
        StoreCase("an acknowledged envelope is removed, and its outcome can be read", acknowledgedEnvelopeIsGone),
        StoreCase("another device, or another secret, finishes nothing", anotherDeviceOrAnotherSecretSettlesNothing),
        StoreCase("a nack after the ack adds its code and changes nothing else", nackAfterAckAddsItsCode),
        StoreCase("a closed channel accepts nothing, and its messages end as gone", closedChannelTakesNothing),
        StoreCase(
            "an event closes its channel and waits until the device acknowledged it",
            eventClosesItsChannel),
        StoreCase(
            "deleting a device or an app removes its inbox, and leaves the outcomes",
            deletionTakesTheInbox),
    ]
}

private func acknowledgedEnvelopeIsGone(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for position in 1...3 { _ = try await fixture.append(fixture.envelope(Int64(position))) }
    let settle = InboxOperation.finish(
        fixture.envelope(2).id, device: fixture.device.serial, FinalOutcome(.acknowledged, code: 100, at: start))
    #expect(try await fixture.store.commit([settle, settle]) == [.finished, .notWaiting])
    #expect(try await fixture.waiting().map(\.position) == [1, 3])
    let record = try #require(try await fixture.store.record(of: fixture.envelope(2).id, at: start))
    #expect(record.finalOutcome == FinalOutcome(.acknowledged, code: 100, at: start))
    #expect(try await fixture.outcome(1) == nil)
}

private func anotherDeviceOrAnotherSecretSettlesNothing(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    let forged = MessageID(position: 1, secret: Bytes16(high: 0, low: 0))
    let results = try await fixture.store.commit([
        .finish(fixture.envelope(1).id, device: DeviceSerial(99), FinalOutcome(.acknowledged, at: start)),
        .finish(forged, device: fixture.device.serial, FinalOutcome(.acknowledged, at: start)),
        .finish(forged, device: nil, FinalOutcome(.cancelled, at: start)),
    ])
    #expect(results == [.notWaiting, .notWaiting, .notWaiting])
    #expect(try await fixture.waiting().count == 1)
    #expect(try await fixture.store.record(of: forged, at: start) == nil)
}

private func nackAfterAckAddsItsCode(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    let id = fixture.envelope(1).id
    _ = try await fixture.store.commit([
        .finish(id, device: fixture.device.serial, FinalOutcome(.acknowledged, code: 100, at: start)),
        .finish(id, device: fixture.device.serial, FinalOutcome(.failed, code: 301, at: start)),
        .finish(id, device: nil, FinalOutcome(.cancelled, at: start)),
    ])
    let record = try #require(try await fixture.store.record(of: id, at: start))
    #expect(record.finalOutcome == FinalOutcome(.acknowledged, code: 301, at: start))
}

private func closedChannelTakesNothing(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    _ = try await fixture.append(fixture.envelope(2, on: fixture.second))
    #expect(
        try await fixture.store.closeChannel(fixture.first.id, device: fixture.device.serial, at: start)
            == fixture.first.serial)
    #expect(try await fixture.append(fixture.envelope(3)) == .originGone)
    #expect(try await fixture.outcome(1) == .gone)
    #expect(try await fixture.waiting().map(\.position) == [2])
    let again = try await StoreFixture.open(1, of: fixture.device, in: fixture.store)
    #expect(again.serial != fixture.first.serial)
    #expect(try await fixture.append(fixture.envelope(4)) == .originGone)
}

private func eventClosesItsChannel(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    var event = fixture.envelope(2)
    event.kind = .channelError(code: 503)
    event.expiresAt = .never
    #expect(try await fixture.append(event) == .stored(replaced: nil))
    #expect(try await fixture.store.channel(fixture.first.serial) == nil)
    #expect(try await fixture.outcome(1) == .gone)
    #expect(try await fixture.waiting(at: start.adding(seconds: 99_999_999)) == [event])
    event = fixture.envelope(3)
    event.kind = .channelClosed
    #expect(try await fixture.append(event) == .originGone)
}

private func deletionTakesTheInbox(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1))
    let removed = try #require(try await fixture.store.deleteDevice(fixture.device.serial, at: start))
    #expect(removed.devices == [fixture.device.serial])
    #expect(Set(removed.channels) == [fixture.first.serial, fixture.second.serial])
    #expect(try await fixture.outcome(1) == .gone)
    #expect(try await fixture.append(fixture.envelope(2)) == .originGone)
    #expect(try await fixture.store.deleteDevice(fixture.device.serial, at: start) == nil)
    #expect(try await fixture.store.deleteApp(try StoreFixture.appID, at: start))
    #expect(try await !fixture.store.deleteApp(try StoreFixture.appID, at: start))
}
