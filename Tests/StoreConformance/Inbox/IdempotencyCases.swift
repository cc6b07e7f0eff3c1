import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

private func claim(_ number: Int64, validFor seconds: Int64 = 100) -> IdempotencyClaim {
    let key = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    return IdempotencyClaim(keyHash: key, fingerprint: key, validUntil: start.adding(seconds: seconds))
}

private func remembers(_ number: Int64, _ fixture: StoreFixture, at now: Timestamp) async throws -> Bool {
    let again = fixture.envelope(900 + number, at: now)
    if case .duplicate = try await fixture.append(again, claim: claim(number, validFor: 1000)) { return true }
    return false
}

extension StoreCase {
    static let idempotency: [StoreCase] = [
        StoreCase(
            "an idempotency key returns the first answer again, to the same request only",
            idempotencyKeyGivesTheFirstAnswerAgain),
        StoreCase("a refused message leaves its idempotency key free", refusedMessageLeavesItsIdempotencyKeyFree),
        StoreCase("the oldest of too many keys are forgotten", oldestKeysAreForgotten),
        StoreCase("the key of a refused message does not count", keyOfARefusedMessageCountsForNothing),
        StoreCase("expired keys make space", keysThatArePastKeepingMakeRoom),
    ]
}

private func idempotencyKeyGivesTheFirstAnswerAgain(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: start.adding(seconds: 86_400))
    let other = IdempotencyClaim(keyHash: [1], fingerprint: [3], validUntil: start.adding(seconds: 86_400))
    #expect(try await fixture.append(fixture.envelope(1), claim: claim) == .stored(replaced: nil))
    let again = InboxResult.duplicate(
        of: fixture.envelope(1).id, acceptedAt: start, expiresAt: start.adding(seconds: 60), outcome: nil)
    #expect(try await fixture.append(fixture.envelope(2), claim: claim) == again)
    #expect(try await fixture.append(fixture.envelope(3), claim: other) == .keyReused)
    #expect(
        try await fixture.append(fixture.envelope(4, on: fixture.second), claim: other) == .stored(replaced: nil))
    #expect(try await fixture.waiting().map(\.position) == [1, 4])
    let nextDay = start.adding(seconds: 86_400)
    #expect(try await fixture.append(fixture.envelope(5, at: nextDay), claim: other) == .keyReused, "until it is forgotten")
    while try await !fixture.store.sweep(at: nextDay, limit: 100).isDone {}
    #expect(try await fixture.append(fixture.envelope(5, at: nextDay), claim: other) == .stored(replaced: nil))
}

private func refusedMessageLeavesItsIdempotencyKeyFree(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(envelopes: 1))
    _ = try await fixture.append(fixture.envelope(1))
    let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: start.adding(seconds: 86_400))
    #expect(try await fixture.append(fixture.envelope(2), claim: claim) == .full)
    _ = try await fixture.store.commit([
        .finish(fixture.envelope(1).id, device: fixture.device.serial, FinalOutcome(.acknowledged, at: start))
    ])
    #expect(try await fixture.append(fixture.envelope(3), claim: claim) == .stored(replaced: nil))
}

private func oldestKeysAreForgotten(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(idempotencyKeys: 16))
    for number in Int64(1)...20 {
        _ = try await fixture.append(fixture.envelope(number), claim: claim(number, validFor: 100 + number))
    }
    for number in Int64(10)...20 { #expect(try await remembers(number, fixture, at: start)) }
    #expect(try await !remembers(1, fixture, at: start))
}

private func keyOfARefusedMessageCountsForNothing(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(envelopes: 8, idempotencyKeys: 16))
    for number in Int64(1)...8 {
        _ = try await fixture.append(fixture.envelope(number), claim: claim(number))
    }
    for number in Int64(100)...200 {
        #expect(try await fixture.append(fixture.envelope(number), claim: claim(number)) == .full)
    }
    _ = try await fixture.store.commit([fixture.acknowledge(8)])
    #expect(try await fixture.append(fixture.envelope(201), claim: claim(201)) == .stored(replaced: nil))
    for number in Int64(1)...8 { #expect(try await remembers(number, fixture, at: start)) }
}

private func keysThatArePastKeepingMakeRoom(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(idempotencyKeys: 16))
    for number in Int64(1)...16 {
        _ = try await fixture.append(fixture.envelope(number), claim: claim(number, validFor: 10))
    }
    let later = start.adding(seconds: 11)
    while try await !fixture.store.sweep(at: later, limit: 100).isDone {}
    for number in Int64(101)...116 {
        _ = try await fixture.append(fixture.envelope(number, at: later), claim: claim(number))
    }
    for number in Int64(101)...116 { #expect(try await remembers(number, fixture, at: later)) }
}
