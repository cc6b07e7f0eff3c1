import CarillonCore
import CarillonWire
import Foundation
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let expiry: [StoreCase] = [
        StoreCase("TTL is exact to the millisecond, swept or not", ttlIsExactToTheMillisecond),
        StoreCase(
            "messages that expire among others are ended, each of them, in steps",
            neighboursExpire),
        StoreCase("a page omits messages that have expired and were not swept yet", pagePassesOverWhatHasExpired),
        StoreCase("outcomes are forgotten after their time, in steps", outcomesAreForgottenAfterTheirTime),
        StoreCase(
            "outcomes with a longer time than at their arrival are forgotten at the new time, the oldest first",
            outcomesAreKeptLonger),
        StoreCase(
            "a message of TTL 0 never waits, and its outcome is the device's report, or dropped", messageOfTTL0NeverWaits),
        StoreCase(
            "delivered messages of TTL 0 without an answer are dropped when the store is opened again",
            volatileIsDroppedAtStart),
    ]
}

private func ttlIsExactToTheMillisecond(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1, ttl: 1))
    let before = start.adding(milliseconds: 999)
    let after = start.adding(milliseconds: 1000)
    #expect(try await fixture.waiting(at: before).count == 1)
    #expect(try await fixture.waiting(at: after).isEmpty)
    #expect(try await fixture.outcome(1, at: before) == nil)
    #expect(try await fixture.outcome(1, at: after) == .expired)
    let late = FinalOutcome(.acknowledged, at: after)
    #expect(
        try await fixture.store.commit([.finish(fixture.envelope(1).id, device: fixture.device.serial, late)])
            == [.notWaiting])
    _ = try await fixture.store.sweep(at: after, limit: 10)
    #expect(try await fixture.outcome(1, at: after) == .expired)
}

private func neighboursExpire(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let operations = (Int64(1)...300).map { position in
        InboxOperation.append(fixture.envelope(position << 10, ttl: position % 3 == 0 ? 100 : 1), AppendRules())
    }
    _ = try await fixture.store.commit(operations)
    // An envelope without neighbours, at a round position.
    _ = try await fixture.append(fixture.envelope(65_536_000, ttl: 1))
    let now = start.adding(seconds: 10)
    var expired: [Int64] = []
    while true {
        let step = try await fixture.store.sweep(at: now, limit: 20)
        #expect(step.expired.count < 100)
        expired += step.expired.map(\.position)
        if step.isDone { break }
    }
    #expect(expired.sorted() == (1...300).filter { $0 % 3 != 0 }.map { $0 << 10 } + [65_536_000])
    #expect(try await fixture.waiting(limit: 300, at: now).count == 100)
}

private func pagePassesOverWhatHasExpired(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for position in Int64(1)...100 {
        _ = try await fixture.append(fixture.envelope(position, ttl: position > 98 ? 60 : 1))
    }
    let now = start.adding(seconds: 10)
    #expect(try await fixture.waiting(limit: 3, at: now).map(\.position) == [99, 100])
    #expect(try await fixture.waiting(limit: 1, at: now).map(\.position) == [99])
    #expect(try await fixture.store.waitingCount(device: fixture.device.serial, at: now) == 2)
}

private func outcomesAreForgottenAfterTheirTime(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(outcomeRetentionSeconds: 100))
    // Neighbours are ended together: a step has the limit or a few more.
    let positions = (Int64(1)...5).map { $0 * 100_000 }
    for position in positions { _ = try await fixture.append(fixture.envelope(position, ttl: 1)) }
    let expired = start.adding(seconds: 2)
    let first = try await fixture.store.sweep(at: expired, limit: 3)
    #expect(first.expired.map(\.position) == Array(positions[..<3]))
    #expect(!first.isDone)
    let second = try await fixture.store.sweep(at: expired, limit: 3)
    #expect(second.expired.map(\.position) == Array(positions[3...]))
    #expect(second.isDone)
    #expect(try await fixture.outcome(500_000, at: expired) == .expired)
    let forgotten = start.adding(seconds: 1 + 110)
    while try await !fixture.store.sweep(at: forgotten, limit: 2).isDone {}
    for position in positions {
        #expect(try await fixture.store.record(of: fixture.envelope(position).id, at: forgotten) == nil)
    }
}

private func outcomesAreKeptLonger(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores, .init(outcomeRetentionSeconds: 100))
    // Neighbours, the last of which is final first.
    for position in Int64(1)...3 {
        _ = try await fixture.append(fixture.envelope(position, ttl: 1_000_000))
        let final = FinalOutcome(.acknowledged, at: start.adding(seconds: 20_000 * (3 - position)))
        _ = try await fixture.store.commit([
            .finish(fixture.envelope(position).id, device: fixture.device.serial, final)
        ])
    }
    let settings = StoreSettings(inbox: .init(outcomeRetentionSeconds: 100_000))
    guard let store = try await stores.restart(fixture.store, settings) else { return }
    let again = fixture.again(store)
    while try await !store.sweep(at: start.adding(seconds: 45_000), limit: 10).isDone {}
    for position in Int64(1)...3 { #expect(try await again.outcome(position) == .acknowledged) }
    while try await !store.sweep(at: start.adding(seconds: 110_000), limit: 10).isDone {}
    #expect(try await again.outcome(3) == nil)
    #expect(try await again.outcome(2) == .acknowledged)
}

private func messageOfTTL0NeverWaits(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for position in 1...2 { _ = try await fixture.append(fixture.envelope(Int64(position), ttl: 0, bytes: 0)) }
    #expect(try await fixture.waiting().isEmpty)
    #expect(try await fixture.outcome(1) == nil)
    _ = try await fixture.store.commit([
        .finish(
            fixture.envelope(1).id, device: fixture.device.serial, FinalOutcome(.acknowledged, code: 100, at: start))
    ])
    let later = start.adding(seconds: 61)
    #expect(try await fixture.outcome(1, at: later) == .acknowledged)
    #expect(try await fixture.outcome(2, at: later) == .dropped)
    _ = try await fixture.store.sweep(at: later, limit: 10)
    #expect(try await fixture.outcome(2, at: later) == .dropped)
}

private func volatileIsDroppedAtStart(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let claim = IdempotencyClaim(keyHash: [1], fingerprint: [2], validUntil: .never)
    // The remaining fraction of this second counts as well.
    let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970) * 1000 + 999)
    _ = try await fixture.append(fixture.envelope(1, ttl: 0, at: now), claim: claim)
    // In another inbox, so that the other is not found by its time.
    _ = try await fixture.append(fixture.envelope(200_000))
    #expect(try await fixture.outcome(1, at: now) == nil)
    guard let store = try await stores.restart(fixture.store) else { return }
    let again = fixture.again(store)
    #expect(try await again.outcome(1, at: now) == .dropped)
    let repeated = try await again.append(again.envelope(300_000, ttl: 0, at: now), claim: claim)
    guard case .duplicate(_, _, _, .dropped) = repeated else {
        Issue.record("a repetition hears something else")
        return
    }
    #expect(try await again.waiting().map(\.position) == [200_000])
}
