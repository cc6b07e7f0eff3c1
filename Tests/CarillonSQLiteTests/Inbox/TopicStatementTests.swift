import CarillonCore
import CarillonWire
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The statements that search the envelope of a topic.
@Suite(.timeLimit(.minutes(5)))
struct TopicStatementTests {
    /// Stores a message with a topic. Returns the result, and the number of statements that search the topic.
    private func append(_ position: Int64, _ fixture: StoreFixture) async throws -> (result: InboxResult, looks: Int) {
        let traced = try await fixture.sqlite.tracing {
            try await fixture.append(fixture.envelope(position), topic: "t")
        }
        return (traced.value, traced.statements.count { $0.contains("topic = ?") })
    }

    @Test func `a topic is searched only if something waits`() async throws {
        let fixture = try await StoreFixture(.memory)
        let first = try await append(1, fixture)
        #expect(first.result == .stored(replaced: nil))
        #expect(first.looks == 0)
        let second = try await append(2, fixture)
        #expect(second.result == .stored(replaced: fixture.envelope(1).id))
        #expect(second.looks == 1)
        _ = try await fixture.store.commit([fixture.acknowledge(2)])
        let third = try await append(3, fixture)
        #expect(third.result == .stored(replaced: nil))
        #expect(third.looks == 0)
        #expect(try await fixture.waiting().map(\.position) == [3])
    }

    @Test func `a topic is searched if the number of waiting messages is unknown`() async throws {
        let fixture = try await StoreFixture(.memory)
        _ = try await append(1, fixture)
        fixture.sqlite.memory.usage.forgetAll()
        let record = InboxOperation.record(
            fixture.envelope(2), AppendRules(topic: "t"), FinalOutcome(.acknowledged, at: StoreFixture.start))
        #expect(try await fixture.store.commit([record]) == [.recorded(replaced: fixture.envelope(1).id)])
    }

    @Test func `a topic is searched after an acknowledgement that was withdrawn`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        _ = try await append(1, fixture)
        let (memory, settings, acknowledgement) = (store.memory, store.settings, fixture.acknowledge(1))
        await #expect(throws: StoreFault.self) {
            try await store.group.run { db in
                let transaction = InboxTransaction(db, memory: memory, settings: settings)
                _ = try transaction.perform([acknowledgement])
                throw StoreFault(.full, "its own")
            }
        }
        let second = try await append(2, fixture)
        #expect(second.result == .stored(replaced: fixture.envelope(1).id))
        #expect(second.looks == 1)
    }
}
