package import CarillonCore
import Logging

extension HomeDomain {
    /// The longest wait for work on items of a shard that the home gives up.
    private static let longestItemWork = Duration.milliseconds(100)

    /// Ends the work of the home on a shard that it has closed, writes what only its memory has of the shard, and forgets the rest. What is
    /// forgotten is read again when it is wanted.
    ///
    /// - Returns: False if work did not end in time, or something cannot be written now. The shard must stay then.
    package func giveUp(_ shard: Shard) async -> Bool {
        guard await itemEngine.giveUp(shard, atMost: Self.longestItemWork) else { return false }
        do {
            // Otherwise the new home could take a device for one that nobody uses.
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

    /// The home gives and takes shards.
    ///
    /// - Parameters:
    ///   - node: The node of the home in the map of shards.
    ///   - place: The place of the home in ``Homes``.
    package func party(on node: NodeNumber, at place: Int) -> ShardMove.Party {
        ShardMove.Party(
            runtime, node: node, place: place, giveUp: { [self] shard in await giveUp(shard) },
            took: { [itemEngine] shard in await itemEngine.took(shard) })
    }
}
