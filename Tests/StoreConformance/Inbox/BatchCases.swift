import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let batches: [StoreCase] = [
        StoreCase("changes within one batch are written as their result", batchIsWrittenAsWhatIsLeft),
        StoreCase("an envelope with an effect that the store does not know fails alone", unknownEffectFailsAlone),
    ]
}

private struct UnknownEffect: FeatureEffect {}

private func batchIsWrittenAsWhatIsLeft(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let device = fixture.device.serial
    let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: start.adding(seconds: 100))
    let results = try await fixture.store.commit([
        .append(fixture.envelope(1), AppendRules(topic: "a")),
        .append(fixture.envelope(2), AppendRules(topic: "a", idempotency: claim)),
        .append(fixture.envelope(3), AppendRules(idempotency: claim)),
        .finish(fixture.envelope(2).id, device: device, FinalOutcome(.acknowledged, at: start)),
        .finish(fixture.envelope(2).id, device: device, FinalOutcome(.failed, code: 301, at: start)),
        .append(fixture.envelope(4, on: fixture.second), AppendRules()),
        .end(DeviceOrigin(device, fixture.second.origin.key), because: .unregistered, at: start),
        .append(fixture.envelope(5, on: fixture.second), AppendRules()),
        .append(fixture.envelope(6), AppendRules()),
    ])
    #expect(
        results == [
            .stored(replaced: nil), .stored(replaced: fixture.envelope(1).id),
            .duplicate(
                of: fixture.envelope(2).id, acceptedAt: start, expiresAt: start.adding(seconds: 60), outcome: nil),
            .finished, .notWaiting, .stored(replaced: nil), .finished, .originGone, .stored(replaced: nil),
        ])
    #expect(try await fixture.waiting().map(\.position) == [6])
    #expect(try await fixture.outcome(1) == .replaced)
    #expect(
        try await fixture.store.record(of: fixture.envelope(2).id, at: start)?.finalOutcome
            == FinalOutcome(.acknowledged, code: 301, at: start))
    #expect(try await fixture.outcome(4) == .gone)
    #expect(try await fixture.store.channel(fixture.second.serial) == nil)
}

private func unknownEffectFailsAlone(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let results = try await fixture.store.commit([
        .append(fixture.envelope(1), AppendRules(effects: [Effect(UnknownEffect())])),
        .append(fixture.envelope(2), AppendRules()),
    ])
    guard case .failed = results[0] else {
        Issue.record("an effect was stored that the store does not know")
        return
    }
    #expect(results[1] == .stored(replaced: nil))
    #expect(try await fixture.waiting().map(\.position) == [2])
}
