import CarillonCore
import CarillonWire
import GRDB
import TestStores
import Testing

@testable import CarillonSQLite
@testable import StoreConformance

/// One change that cannot be stored fails, and does not affect others.
@Suite(.timeLimit(.minutes(5)))
struct PoisonedCommitTests {
    /// How the database refuses the poisoned row: it rolls back the statement, or the whole transaction.
    enum Fault: String, CaseIterable, Sendable {
        case statement = "ABORT"
        case transaction = "ROLLBACK"
    }

    private func poison(
        _ positions: ClosedRange<Int64>, every step: Int64 = 1, _ fault: Fault, in store: SQLiteStore
    ) async throws {
        try await store.database.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER poison BEFORE INSERT ON envelope
                    WHEN NEW.position BETWEEN \(positions.lowerBound) AND \(positions.upperBound)
                        AND NEW.position % \(step) = 0
                    BEGIN SELECT RAISE(\(fault.rawValue), 'poison'); END
                    """)
        }
    }

    @Test(arguments: Fault.allCases, SQLiteStores.all)
    func `of a group, only the change that cannot be stored fails`(fault: Fault, kind: SQLiteStores) async throws {
        let fixture = try await StoreFixture(kind, .init(envelopes: 100))
        try await poison(5...5, fault, in: fixture.sqlite)
        let operations = (Int64(1)...20).map { InboxOperation.append(fixture.envelope($0), AppendRules()) }
        let results = try await fixture.store.commit(operations)
        for (position, result) in zip(Int64(1)..., results) {
            if case .failed = result { #expect(position == 5) } else { #expect(result == .stored(replaced: nil)) }
        }
        #expect(results.contains { if case .failed = $0 { true } else { false } })
        #expect(try await fixture.waiting().map(\.position) == Array(1...4) + Array(6...20))
        // A count of an operation that was rolled back does not count.
        for position in Int64(21)...101 {
            #expect(try await fixture.append(fixture.envelope(position)) == .stored(replaced: nil))
        }
        #expect(try await fixture.append(fixture.envelope(102)) == .full)
    }

    @Test func `when nothing can be stored, the whole group fails, after a few attempts`() async throws {
        let fixture = try await StoreFixture(.memory)
        try await poison(1...5000, .transaction, in: fixture.sqlite)
        let operations = (Int64(1)...2000).map { InboxOperation.append(fixture.envelope($0), AppendRules()) }
        await #expect(throws: StoreFault.self) { _ = try await fixture.store.commit(operations) }
        #expect(try await fixture.waiting(limit: 5000).isEmpty)
    }

    @Test(arguments: [(1, 8), (2, 127)] as [(Int64, Int64)])
    func `after a number of failures, in a row or in all, the others of the group are not tried`(
        step: Int64, lastStored: Int64
    ) async throws {
        let fixture = try await StoreFixture(.memory)
        try await poison(1...5000, every: step, .statement, in: fixture.sqlite)
        let operations = (Int64(1)...200).map { InboxOperation.append(fixture.envelope($0), AppendRules()) }
        let results = try await fixture.store.commit(operations)
        let refused = results.indices.filter {
            if case .failed(let fault) = results[$0] { fault.message.hasPrefix("too many") } else { false }
        }
        #expect(refused.first == Int(lastStored) + (step == 1 ? 0 : 1))
        #expect(refused.last == 199)
        #expect(try await fixture.waiting(limit: 500).count == (step == 1 ? 0 : 64))
    }

    @Test(arguments: Fault.allCases)
    func `an offer that cannot be stored beside another notes no place and no completion`(fault: Fault) async throws {
        let fixture = try await UpdateFixture(SQLiteStores.memory)
        let store = fixture.base.sqlite
        let binding = try await fixture.bind()
        let (first, second) = (try await fixture.publish(1), try await fixture.publish(2))
        let (place, later) = (AudienceCursor(first.serial, rules: 1), AudienceCursor(second.serial, rules: 1))
        try await poison(2...2, fault, in: store)
        let results = try await store.commit([
            fixture.offer(1, first, to: binding, cursor: place), fixture.offer(2, second, to: binding, cursor: later),
        ])
        #expect(results.count == 2 && results[0] == .stored(replaced: nil))
        guard case .failed = results[1] else {
            Issue.record("an envelope was stored that the database refuses")
            return
        }
        #expect(try await store.presentBinding(of: fixture.device)?.cursor == place)
        #expect(try await fixture.completion(second, binding) == nil)
        let again = try await store.commit([fixture.offer(3, second, to: binding, cursor: later)])
        #expect(again == [.stored(replaced: nil)])
        #expect(try await store.presentBinding(of: fixture.device)?.cursor == later)
    }

    @Test func `a caller whose work ends the transaction of all fails alone`() async throws {
        let fixture = try await StoreFixture(.file)
        let store = fixture.sqlite
        try await poison(5...5, .transaction, in: store)
        let failed = try await withThrowingTaskGroup(of: (Int64, Bool).self) { group in
            for position in Int64(1)...40 {
                group.addTask {
                    do {
                        _ = try await fixture.append(fixture.envelope(position))
                        return (position, false)
                    } catch {
                        return (position, true)
                    }
                }
            }
            return try await group.reduce(into: [Int64]()) { if $1.1 { $0.append($1.0) } }
        }
        #expect(failed == [5])
        #expect(Set(try await fixture.waiting().map(\.position)) == Set(1...40).subtracting([5]))
    }
}
