package import CarillonCore
import GRDB

extension SQLiteStore: LeasedWorkStore {
    package func bringBackWork(in shards: ShardSet, at now: Timestamp) async throws {
        try await group.run { db in try WorkQueues(db).bringBack(in: shards, at: now) }
    }

    package func dueWork(
        in shards: ShardSet, at now: Timestamp, besides busy: BusyPeerSets, limit: Int
    ) async throws -> [DueWork] {
        try await read { db in try WorkQueues(db).due(in: shards, at: now, besides: busy, limit: limit) }
    }
}
