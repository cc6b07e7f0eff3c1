package import CarillonCore

extension SQLiteStore: FencedStore {
    package func home(_ fence: HomeFence) -> any HomeStore { SQLiteStore(self, fencedBy: fence) }
}

extension SQLiteStore: NodeStore {
    package func addIncarnation(of node: NodeNumber) async throws -> HomeFence {
        try await group.run { [incarnations] db in
            incarnations.forget()
            return try NodeTable(db).add(node)
        }
    }

    package func removeIncarnation(_ fence: HomeFence) async throws -> Bool {
        try await group.run { [incarnations] db in
            incarnations.forget()
            return try NodeTable(db).remove(fence)
        }
    }

    package func shardMap() async throws -> ShardMap { try await read { db in try NodeTable(db).shardMap() } }
}

extension SQLiteStore: HandOverStore {
    package func handOvers(in shards: ShardSet, after number: Int64, limit: Int) async throws -> [HandOver] {
        try await read { db in try HandOverTable(db).pending(in: shards, after: number, limit: limit) }
    }

    package func waitingHandOvers(in shards: ShardSet, limit: Int) async throws -> WaitingHandOvers {
        // This is a short read, not a scan: it reads at most `limit` entries of an index.
        try await read { db in try HandOverTable(db).waiting(in: shards, limit: limit) }
    }

    package func applyHandOvers(_ applied: [AppliedHandOver]) async throws {
        try await group.run { db in try HandOverTable(db).apply(applied) }
    }
}

extension SQLiteStore: ShardStore {
    package func changeShards(
        _ shards: ShardSet, to place: ShardMap.Place, from version: Int64
    ) async throws -> Int64? {
        try await group.run { db in try NodeTable(db).change(shards, to: place, from: version) }
    }
}
