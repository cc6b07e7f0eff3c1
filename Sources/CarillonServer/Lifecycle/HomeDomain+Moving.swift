package import CarillonCore
import Logging

extension HomeDomain {
    /// The longest wait for work on items of a shard that leaves this home.
    private static let longestItemWork = Duration.milliseconds(100)

    /// Ends the work of the home on a shard that it has closed, writes the data of the shard that only the memory contains, and
    /// removes the rest from memory. Removed data is read again when it is needed.
    ///
    /// - Returns: False if work did not end in time, or data cannot be written now. In this case the shard must stay.
    package func release(_ shard: Shard) async -> Bool {
        guard await itemEngine.release(shard, atMost: Self.longestItemWork) else { return false }
        do {
            // Otherwise the new home could treat an active device as unused.
            try await devices.writeSeen(in: shard)
        } catch {
            shared.logger.warning(
                "cannot store when devices were seen; keeping the shard", metadata: ["reason": "\(error)"])
            return false
        }
        directory.forget(shard)
        await attachments.endUploads(in: shard)
        return true
    }

    /// Returns the home as a party of a move of shards.
    ///
    /// - Parameters:
    ///   - node: The node of the home in the map of shards.
    ///   - place: The place of the home in ``Homes``.
    package func participant(on node: NodeNumber, at place: Int) -> ShardMove.Participant {
        ShardMove.Participant(
            runtime, node: node, place: place, release: { [self] shard in await release(shard) },
            took: { [itemEngine] shard in await itemEngine.took(shard) })
    }
}
