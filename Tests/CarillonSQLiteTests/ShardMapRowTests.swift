import CarillonCore
import CarillonSQLite
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ShardMapRowTests {
    @Test func `a home that starts on a store without the version of the shard map stops with a fault`() async throws {
        let store = try SQLiteStore(inMemory: StoreSettings())
        let home = store.home(try await store.addIncarnation(of: .only))
        try await store.run("DELETE FROM shard_map")
        let damaged = StoreFault(.damaged, "the shard map has no version")
        await #expect(throws: damaged) { try await store.shardMap() }
        await #expect(throws: damaged) {
            try await ShardMap.take(.all, to: ShardMap.Place(node: .only, epoch: 1), by: home, in: store)
        }
    }
}
