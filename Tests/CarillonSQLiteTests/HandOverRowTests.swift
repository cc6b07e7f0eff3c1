import CarillonCore
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The rows of hand-overs, and the statement that reads them.
@Suite(.timeLimit(.minutes(1)))
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
}
