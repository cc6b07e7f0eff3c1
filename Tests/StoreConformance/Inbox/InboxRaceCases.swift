import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let inboxRaces: [StoreCase] = [
        StoreCase("concurrent messages fill an inbox to its limit and no further", inboxFillsToItsLimit),
        StoreCase("of concurrent messages with one key, one is stored", oneClaimStoresOne),
        StoreCase("of messages of one topic in one commit, one waits", oneTopicWaitsOnce),
        StoreCase("a message is finished once", messageIsSettledOnce),
        StoreCase(
            "a message that is sent beside the end of a channel is stored before it, or is refused", channelEndsForAll),
    ]
}

private func inboxFillsToItsLimit(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, InboxLimits(envelopes: 5))
    let results = try await atOnce(12) { number in
        try await fixture.append(fixture.envelope(Int64(number) + 1))
    }
    #expect(results.filter { $0 == .stored(replaced: nil) }.count == 5)
    #expect(results.filter { $0 == .full }.count == 7)
    #expect(try await fixture.store.waitingCount(device: fixture.device.serial, at: start) == 5)
    #expect(try await fixture.store.waitingInAll().envelopes == 5)
}

private func oneClaimStoresOne(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: start.adding(seconds: 100))
    let results = try await atOnce(8) { number in
        try await fixture.append(fixture.envelope(Int64(number) + 1), claim: claim)
    }
    let waiting = try await fixture.waiting()
    let stored = try #require(waiting.first)
    #expect(waiting.count == 1)
    #expect(results[Int(stored.position) - 1] == .stored(replaced: nil))
    let duplicate = InboxResult.duplicate(
        of: stored.id, acceptedAt: start, expiresAt: start.adding(seconds: 60), outcome: nil)
    #expect(results.filter { $0 == duplicate }.count == 7)
}

private func oneTopicWaitsOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let results = try await fixture.store.commit(
        (1...8).map { .append(fixture.envelope($0), AppendRules(topic: "a")) })
    #expect(try await fixture.waiting().map(\.position) == [8])
    #expect(results.map { $0.replaced?.position } == [nil, 1, 2, 3, 4, 5, 6, 7])
}

private func messageIsSettledOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let device = fixture.device.serial
    for position in Int64(1)...5 {
        let id = fixture.envelope(position).id
        #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
        let results = try await atOnce(8) { number in
            let finalOutcome = FinalOutcome(number % 2 == 0 ? .acknowledged : .cancelled, at: start)
            let operation = InboxOperation.finish(id, device: number % 2 == 0 ? device : nil, finalOutcome)
            return try await fixture.store.commit([operation])[0]
        }
        let winners = results.indices.filter { results[$0] == .finished }
        #expect(winners.count == 1)
        #expect(results.filter { $0 == .notWaiting }.count == 7)
        let winner = try #require(winners.first)
        let expected: Outcome = winner % 2 == 0 ? .acknowledged : .cancelled
        #expect(try await fixture.outcome(position) == expected)
    }
    #expect(try await fixture.store.waitingInAll() == .init())
}

private func channelEndsForAll(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    for round in Int64(0)..<5 {
        let channel = try await StoreFixture.open(UInt64(10 + round), of: device, in: store)
        let results = try await atOnce(9) { place -> InboxResult? in
            if place == 4 {
                _ = try await store.closeChannel(channel.id, device: device.serial, at: start)
                return nil
            }
            return try await fixture.append(fixture.envelope(round * 100 + Int64(place) + 1, on: channel))
        }
        for place in results.indices where place != 4 {
            let position = round * 100 + Int64(place) + 1
            let isStored = results[place] == .stored(replaced: nil)
            #expect(isStored || results[place] == .originGone)
            #expect(try await fixture.outcome(position) == (isStored ? Outcome.gone : nil))
        }
        #expect(try await fixture.waiting().isEmpty)
    }
}
