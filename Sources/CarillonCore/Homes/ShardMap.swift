/// The node of each shard at one version of the map.
package struct ShardMap: Equatable, Sendable {
    package struct Place: Hashable, Sendable {
        package var node: NodeNumber
        /// The epoch of positions in the shard (``PositionSource``).
        package var epoch: Int64

        package init(node: NodeNumber, epoch: Int64) {
            self.node = node
            self.epoch = epoch
        }
    }

    /// The number of changes of the map.
    package var version: Int64
    /// A shard that was never assigned is absent.
    package var places: [Shard: Place]

    package init(version: Int64, places: [Shard: Place]) {
        self.version = version
        self.places = places
    }

    /// Writes that a home has the shards. The caller must ensure that no other running home has one of them.
    ///
    /// - Parameters:
    ///   - place: The node of the home, and an epoch that the home claimed and did not use before.
    ///   - homeStore: The home's handle of the store.
    /// - Throws: ``StoreFault``, of the kind `fenced` if the incarnation of the home was removed.
    package static func take(
        _ shards: ShardSet, to place: Place, by homeStore: any ShardStore, in store: any NodeStore
    ) async throws {
        // After another change of the map, the present version is read again.
        while true {
            let version = try await store.shardMap().version
            if try await homeStore.changeShards(shards, to: place, from: version) != nil { return }
        }
    }
}
