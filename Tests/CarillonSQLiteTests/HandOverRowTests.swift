import CarillonCore
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The rows of hand-overs, and the statement that reads them.
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
    }
    @Test func `an index finds the hand-overs to some shards`() async throws {
        let store = try await SubscriptionFixture(SQLiteStores.memory).base.sqlite
        let traced = try await store.tracing {
            try await store.handOvers(in: ShardSet([Shard(number: 7)]), after: 0, limit: 9)
        }
        let select = try #require(traced.statements.first)
        #expect(traced.statements.count == 1)
        let plan = try await store.read { db in
            let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + select)
            statement.setUncheckedArguments([])
            return try Row.fetchAll(statement).map { row in row["detail"] as String }
        }
        #expect(plan.contains { $0.contains("USING INDEX hand_over_of_shard") }, "\(plan)")
    }
}
