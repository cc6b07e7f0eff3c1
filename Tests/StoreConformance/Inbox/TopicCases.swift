import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let topics: [StoreCase] = [
        StoreCase("a topic keeps only the newest, on its own channel", topicKeepsOnlyTheNewest),
        StoreCase("an expired message is not replaced but expired", expiredMessageIsNotReplacedButExpired),
        StoreCase(
            "a message that no device received is a replacement all the same, and replaces nothing newer",
            messageThatNobodyWasGivenReplaces),
        StoreCase("a record names the message that it replaced", recordTellsWhatItReplaced),
        StoreCase("a late change replaces nothing newer of its topic", lateChangeReplacesNothingNewer),
    ]
}

private func topicKeepsOnlyTheNewest(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    #expect(try await fixture.append(fixture.envelope(1), topic: "t") == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(2, on: fixture.second), topic: "t") == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(3), topic: "u") == .stored(replaced: nil))
    #expect(try await fixture.append(fixture.envelope(4), topic: "t") == .stored(replaced: fixture.envelope(1).id))
    #expect(try await fixture.waiting().map(\.position) == [2, 3, 4])
    #expect(try await fixture.outcome(1) == .replaced)
    let acknowledge = InboxOperation.finish(
        fixture.envelope(4).id, device: fixture.device.serial, FinalOutcome(.acknowledged, at: start))
    _ = try await fixture.store.commit([acknowledge])
    #expect(try await fixture.append(fixture.envelope(5), topic: "t") == .stored(replaced: nil))
}

private func expiredMessageIsNotReplacedButExpired(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1, ttl: 1), topic: "t")
    let later = start.adding(seconds: 5)
    _ = try await fixture.append(fixture.envelope(2, at: later), topic: "t")
    #expect(try await fixture.outcome(1, at: later) == .expired)
}

private func messageThatNobodyWasGivenReplaces(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1), topic: "a")
    let replace = InboxOperation.replace(fixture.envelope(2, ttl: 0), AppendRules(topic: "a"))
    #expect(try await fixture.store.commit([replace]) == [.recorded(replaced: fixture.envelope(1).id)])
    _ = try await fixture.append(fixture.envelope(3), topic: "a")
    #expect(try await fixture.store.commit([replace]) == [.recorded(replaced: nil)])
    #expect(try await fixture.waiting().map(\.position) == [3])
    #expect(try await fixture.store.record(of: fixture.envelope(2).id, at: start) == nil)
}

private func recordTellsWhatItReplaced(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await fixture.append(fixture.envelope(1), topic: "a")
    let record = InboxOperation.record(
        fixture.envelope(2), AppendRules(topic: "a"), FinalOutcome(.acknowledged, at: start))
    #expect(try await fixture.store.commit([record]) == [.recorded(replaced: fixture.envelope(1).id)])
    #expect(try await fixture.outcome(1) == .replaced)
}

private func lateChangeReplacesNothingNewer(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let late = fixture.envelope(1, ttl: 0)
    let rules = AppendRules(topic: "a")
    let changes: [InboxOperation] = [.replace(late, rules), .record(late, rules, FinalOutcome(.acknowledged, at: start))]
    // The newer message is in the same commit, and then in an earlier one.
    let results = try await fixture.store.commit([.append(fixture.envelope(2), rules), changes[0]])
    #expect(results == [.stored(replaced: nil), .recorded(replaced: nil)])
    #expect(try await fixture.store.commit(changes) == [.recorded(replaced: nil), .recorded(replaced: nil)])
    #expect(try await fixture.waiting().map(\.position) == [2])
}
