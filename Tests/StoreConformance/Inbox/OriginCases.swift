import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

private func pointing(_ envelope: Envelope, to content: SharedContentID, _ body: [UInt8]) -> Envelope {
    var envelope = envelope
    envelope.kind = .message(.init(body: body, coding: ContentCoding(.identity), shared: content))
    return envelope
}

extension StoreCase {
    static let origins: [StoreCase] = [
        StoreCase("an envelope of the device itself ends with no channel", envelopeOfTheDeviceItselfEndsWithNoChannel),
        StoreCase("one topic of two origins is two topics", oneTopicOfTwoOriginsIsTwoTopics),
        StoreCase(
            "a shared body is delivered to each device, counts for each, and is removed with the last of them",
            bodyThatManyPointTo),
        StoreCase(
            "a body that is not released stays without references", bodyThatIsNotReleased),
    ]
}

private func envelopeOfTheDeviceItselfEndsWithNoChannel(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    var envelope = fixture.envelope(1)
    envelope.origin = .device(fixture.device.serial)
    #expect(try await fixture.append(envelope) == .stored(replaced: nil))
    for channel in [fixture.first, fixture.second] {
        _ = try await fixture.store.closeChannel(channel.id, device: fixture.device.serial, at: start)
    }
    #expect(try await fixture.waiting() == [envelope])
    _ = try await fixture.store.deleteDevice(fixture.device.serial, at: start)
    #expect(try await fixture.outcome(1) == .gone)
    var late = fixture.envelope(2)
    late.origin = envelope.origin
    #expect(try await fixture.append(late) == .originGone)
}

private func oneTopicOfTwoOriginsIsTwoTopics(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    var own = fixture.envelope(2)
    own.origin = .device(fixture.device.serial)
    _ = try await fixture.append(fixture.envelope(1), topic: "a")
    #expect(try await fixture.append(own, topic: "a") == .stored(replaced: nil))
    #expect(try await fixture.waiting().map(\.origin.kind) == [.channel, .device])
}

private func bodyThatManyPointTo(_ stores: any StoreMaker) async throws {
    let body = Array(repeating: UInt8(7), count: 1000)
    let fixture = try await StoreFixture(stores, .init(bytes: 2 * (Envelope.overhead + 1000)))
    let content = try await fixture.store.addContent(body)
    let envelopes = [
        pointing(fixture.envelope(1), to: content, body),
        pointing(fixture.envelope(2, on: fixture.second), to: content, body),
    ]
    for envelope in envelopes { #expect(try await fixture.append(envelope) == .stored(replaced: nil)) }
    #expect(try await fixture.waiting() == envelopes)
    #expect(try await fixture.append(pointing(fixture.envelope(3), to: content, body)) == .full)
    try await fixture.store.releaseContent(content)
    _ = try await fixture.store.sweep(at: start, limit: 10)
    #expect(try await fixture.waiting() == envelopes)
    for envelope in envelopes {
        let settle = InboxOperation.finish(
            envelope.id, device: fixture.device.serial, FinalOutcome(.acknowledged, at: start))
        #expect(try await fixture.store.commit([settle]) == [.finished])
    }
    _ = try await fixture.store.sweep(at: start, limit: 10)
    let late = try await fixture.store.commit([
        .append(pointing(fixture.envelope(4), to: content, body), AppendRules()),
        .append(fixture.envelope(5), AppendRules()),
    ])
    guard case .failed = late[0] else {
        Issue.record("a body that is gone can be pointed to")
        return
    }
    #expect(late[1] == .stored(replaced: nil))
}

private func bodyThatIsNotReleased(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let content = try await fixture.store.addContent([1, 2, 3])
    _ = try await fixture.store.sweep(at: start, limit: 10)
    let envelope = pointing(fixture.envelope(1), to: content, [1, 2, 3])
    #expect(try await fixture.append(envelope) == .stored(replaced: nil))
    #expect(try await fixture.waiting() == [envelope])
}
