/// Stores the running homes, and the node of each shard. Any node can call these methods. Methods that write are atomic and
/// durable, as ``Store`` describes.
package protocol NodeStore: Sendable {
    /// Adds a start of a home on a node. The incarnation is greater than every one that was returned for the node before, also
    /// before the store was reopened. Concurrent calls return different incarnations. The same change removes the former
    /// incarnation of the node.
    ///
    /// - Throws: ``StoreFault``.
    func addIncarnation(of node: NodeNumber) async throws -> HomeFence
    /// Removes the incarnation. When the call returns, every write of the home that was not refused is on disk, and each later
    /// write is refused.
    ///
    /// - Returns: Whether this call removed the incarnation. Of concurrent calls, one does.
    /// - Throws: ``StoreFault``.
    func removeIncarnation(_ fence: HomeFence) async throws -> Bool
    /// Returns the map with its version.
    ///
    /// - Throws: ``StoreFault``, of the kind `damaged` if the store has no version of the map.
    func shardMap() async throws -> ShardMap
}

/// Changes the map of shards for a home. Call the methods on the home's handle of the store.
package protocol ShardStore: Sendable {
    /// Assigns shards to a place if the map still has the given version, and increases its version by one. Of concurrent calls
    /// with one version, one changes the map.
    ///
    /// A home assigns shards to itself to take them over, and to another node to release them.
    ///
    /// - Returns: The new version; nil if the map had another version. Then nothing was changed.
    /// - Throws: ``StoreFault``.
    func changeShards(_ shards: ShardSet, to place: ShardMap.Place, from version: Int64) async throws -> Int64?
}
