import CarillonCore
import GRDB

/// The tables `node`, `shard` and `shard_map`.
struct NodeTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Adds an incarnation of the node, which replaces its former one.
    func add(_ node: NodeNumber) throws -> HomeFence {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO node (number, incarnation, is_removed) VALUES (?, 1, FALSE)
            ON CONFLICT (number) DO UPDATE SET incarnation = node.incarnation + 1, is_removed = FALSE
            RETURNING incarnation
            """)
        insert.bind(node.rawValue)
        guard let incarnation = try insert.first({ $0.integer(0) }) else {
            throw StoreFault(.unavailable, "a row was not inserted")
        }
        return HomeFence(node: node, incarnation: incarnation)
    }

    /// Removes an incarnation. Returns whether it existed.
    func remove(_ fence: HomeFence) throws -> Bool {
        var update = try BoundStatement(
            db,
            """
            UPDATE node SET is_removed = TRUE WHERE number = ? AND incarnation = ? AND NOT is_removed RETURNING number
            """)
        update.bind(fence.node.rawValue)
        update.bind(fence.incarnation)
        return try update.run()
    }

    func living() throws -> Set<HomeFence> {
        var select = try BoundStatement(db, "SELECT number, incarnation FROM node WHERE NOT is_removed")
        let fences = try select.all { columns in
            HomeFence(node: NodeNumber(columns.integer(0)), incarnation: columns.integer(1))
        }
        return Set(fences)
    }

    // MARK: Shards

    func shardMap() throws -> ShardMap {
        var selectVersion = try BoundStatement(db, "SELECT version FROM shard_map")
        guard let version = try selectVersion.first({ $0.integer(0) }) else {
            throw StoreFault(.damaged, "the shard map has no version")
        }
        var select = try BoundStatement(db, "SELECT number, node, epoch FROM shard")
        var map = ShardMap(version: version, places: [:])
        try select.forEachRow { columns in
            guard let number = UInt16(exactly: columns.integer(0)), number < Shard.count else {
                throw StoreFault(.unavailable, "the row of a shard cannot be read")
            }
            map.places[Shard(number: number)] = ShardMap.Place(
                node: NodeNumber(columns.integer(1)), epoch: columns.integer(2))
            return true
        }
        return map
    }

    /// Returns the new version; nil if the map had another version.
    func change(_ shards: ShardSet, to place: ShardMap.Place, from version: Int64) throws -> Int64? {
        var update = try BoundStatement(
            db, "UPDATE shard_map SET version = version + 1 WHERE version = ? RETURNING version")
        update.bind(version)
        guard let changed = try update.first({ $0.integer(0) }) else { return nil }
        var assign = try BoundStatement(
            db,
            """
            INSERT INTO shard (number, node, epoch) VALUES (?, ?, ?)
            ON CONFLICT (number) DO UPDATE SET node = excluded.node, epoch = excluded.epoch
            """)
        for shard in shards.shards {
            assign.bind(Int64(shard.number))
            assign.bind(place.node.rawValue)
            assign.bind(place.epoch)
            try assign.run()
        }
        return changed
    }
}
