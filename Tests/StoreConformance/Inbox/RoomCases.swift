import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let room: [StoreCase] = [
        StoreCase("a full inbox refuses messages, and accepts them again when it has space", fullInboxRefuses),
        StoreCase("a replacement fits into a full inbox, as it makes it no longer", replacementFindsRoom),
        StoreCase("bytes fill an inbox too", bytesFillAnInboxToo),
        StoreCase("however often a topic is replaced, the inbox has the same space", howeverOftenATopicIsReplaced),
        StoreCase(
            "a message that expires earlier than the others of a full inbox makes space in time",
            earlierExpiryMakesRoom),
    ]
}

private func fullInboxRefuses(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(envelopes: 2))
    #expect(try await fixture.append(fixture.envelope(1, ttl: 10)) == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(2)) == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(3)) == .full)
    #expect(try await fixture.waiting().map(\.position) == [1, 2])
    let later = start.adding(seconds: 11)
    #expect(try await fixture.append(fixture.envelope(4, at: later)) == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(5, at: later)) == .full)
    _ = try await fixture.store.commit([
        .finish(fixture.envelope(2).id, device: fixture.device.serial, FinalOutcome(.acknowledged, at: later))
    ])
    #expect(try await fixture.append(fixture.envelope(6, at: later)) == .stored(replaced: nil))
}

private func replacementFindsRoom(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(envelopes: 2))
    _ = try await fixture.append(fixture.envelope(1), topic: "t")
    _ = try await fixture.append(fixture.envelope(2))
    #expect(try await fixture.append(fixture.envelope(3), topic: "t") == .stored(replaced: fixture.envelope(1).id))
    #expect(try await fixture.append(fixture.envelope(4), topic: "u") == .full)
    #expect(try await fixture.waiting().map(\.position) == [2, 3])
}

private func bytesFillAnInboxToo(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(bytes: 3000))
    #expect(try await fixture.append(fixture.envelope(1, bytes: 2000)) == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(2, bytes: 2000)) == .full)
    #expect(try await fixture.append(fixture.envelope(3, bytes: 100)) == .stored(replaced: nil))
}

private func howeverOftenATopicIsReplaced(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(envelopes: 2, bytes: 2 * (Envelope.overhead + 100)))
    for position in Int64(1)...50 {
        guard case .stored = try await fixture.append(fixture.envelope(position, bytes: 100), topic: "a") else {
            Issue.record("refused at \(position)")
            return
        }
    }
    #expect(try await fixture.append(fixture.envelope(51, bytes: 100)) == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(52, bytes: 100)) == .full)
    guard case .stored(replaced: .some) = try await fixture.append(fixture.envelope(53, bytes: 100), topic: "a")
    else {
        Issue.record("a replacement fits into a full inbox")
        return
    }
    #expect(try await fixture.append(fixture.envelope(54, bytes: 101), topic: "a") == .full)
}

private func earlierExpiryMakesRoom(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(envelopes: 2))
    for position in Int64(1)...2 { _ = try await fixture.append(fixture.envelope(position)) }
    #expect(try await fixture.append(fixture.envelope(3)) == .full)
    _ = try await fixture.store.commit([fixture.acknowledge(2)])
    #expect(try await fixture.append(fixture.envelope(4, ttl: 1)) == .stored(replaced: nil))
    let later = start.adding(seconds: 2)
    #expect(try await fixture.append(fixture.envelope(5, at: later)) == .stored(replaced: nil))
}
