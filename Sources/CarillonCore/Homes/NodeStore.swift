/// Stores the living homes, and the node of each shard. Any node can call these methods. Methods that write are atomic and
/// durable, as ``Store`` describes.
package protocol NodeStore: Sendable {
    /// Adds a start of a home on a node. The incarnation is greater than each that a call returned for the node before, also before the
    /// store was reopened. Calls at once return different incarnations. The former incarnation of the node is removed by the same change.
    ///
    /// - Throws: ``StoreFault``.
    func addIncarnation(of node: NodeNumber) async throws -> HomeFence
    /// Removes the incarnation. When the call returns, every write of the home is on disk that was not refused, and each later write is
    /// refused.
    ///
    /// - Returns: Whether this call removed the incarnation. Of calls at once, one does.
    /// - Throws: ``StoreFault``.
    func removeIncarnation(_ fence: HomeFence) async throws -> Bool
    /// Returns the map and its version, read at one moment.
    ///
    /// - Throws: ``StoreFault``, of the kind `damaged` if the store has no version of the map.
    func shardMap() async throws -> ShardMap
}

/// Changes the map of shards for a home. The methods are called through the handle of the home.
package protocol ShardStore: Sendable {
    /// Assigns shards to a place if the map still has the given version, and makes its version one greater. Of calls at once with one
    /// version, one changes the map.
    ///
    /// A home assigns shards to itself when it takes them over, and to another node when it gives them up.
    ///
    /// - Returns: The new version; nil if the map had another version, and nothing was changed.
    /// - Throws: ``StoreFault``.
    func changeShards(_ shards: ShardSet, to place: ShardMap.Place, from version: Int64) async throws -> Int64?
}
