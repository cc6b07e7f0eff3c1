import CarillonCore
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The rows of hand-overs, and the statements that read them.
@Suite(.timeLimit(.minutes(5)))
struct HandOverRowTests {
    @Test func `a hand-over of an unknown kind is left out, and stays`() async throws {
        let store = try await SubscriptionFixture(SQLiteStores.memory).base.sqlite
        let known = HandOver.Kind.subscriptionsChanged.rawValue
        let unknown = HandOver.Kind.allCases.reduce(0) { $1.rawValue > $0 ? $1.rawValue : $0 } + 1
        for kind in [unknown, unknown, known] {
            try await store.run("INSERT INTO hand_over (shard, kind, content) VALUES (7, \(kind), '1')")
        }
        let found = try await store.handOvers(in: .all, after: 0, limit: 1)
        #expect(found.map(\.kind) == [.subscriptionsChanged])
        try await store.apply(found)
        #expect(try await store.handOvers(in: .all, after: 0, limit: 9).isEmpty)
        #expect(try await store.rowCount(of: "hand_over") == 2)
        #expect(try await store.waitingHandOvers(in: .all, limit: 9).count == 2)
    }

    @Test func `an index finds the hand-overs to some shards`() async throws {
        let store = try await SubscriptionFixture(SQLiteStores.memory).base.sqlite
        let traced = try await store.tracing {
            try await store.handOvers(in: ShardSet([Shard(number: 7)]), after: 0, limit: 9)
        }
        let select = try #require(traced.statements.first)
        #expect(traced.statements.count == 1)
        let steps = try await plan(of: select, in: store)
        #expect(steps.contains { $0.contains("USING INDEX hand_over_of_shard") }, "\(steps)")
    }

    @Test func `an index counts the hand-overs to some shards, and finds the first in each`() async throws {
        let store = try await SubscriptionFixture(SQLiteStores.memory).base.sqlite
        for (number, shard) in [(11, 7), (12, 8), (13, 9), (14, 7)] {
            try await store.run("INSERT INTO hand_over (number, shard, kind, content) VALUES (\(number), \(shard), 1, '1')")
        }
        let traced = try await store.tracing {
            try await store.waitingHandOvers(in: ShardSet([Shard(number: 9), Shard(number: 8)]), limit: 9)
        }
        #expect(traced.value == WaitingHandOvers(count: 2, first: 12))
        #expect(traced.statements.count == 2)
        for statement in traced.statements {
            let steps = try await plan(of: statement, in: store)
            #expect(steps.contains { $0.contains("SEARCH hand_over USING COVERING INDEX hand_over_of_shard") }, "\(steps)")
        }
    }

    @Test func `one statement finds that no hand-over waits`() async throws {
        let store = try await SubscriptionFixture(SQLiteStores.memory).base.sqlite
        let traced = try await store.tracing { try await store.waitingHandOvers(in: .all, limit: 9) }
        #expect(traced.value == WaitingHandOvers(count: 0, first: nil))
        #expect(traced.statements.count == 1)
    }

    private func plan(of statement: String, in store: SQLiteStore) async throws -> [String] {
        try await store.read { db in
            let explained = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + statement)
            explained.setUncheckedArguments([])
            return try Row.fetchAll(explained).map { row in row["detail"] as String }
        }
    }
}
