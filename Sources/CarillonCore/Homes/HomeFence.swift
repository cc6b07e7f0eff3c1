/// A node of the server: a place where a process runs homes.
package struct NodeNumber: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    /// The only node of a server without other nodes.
    package static let only = NodeNumber(1)
}

/// Names one start of a home. A store refuses the writes of a home whose incarnation was removed.
///
/// Shards are not part of the fence. A home gives up a shard by a write of its own, after it has written everything of the shard.
package struct HomeFence: Hashable, Sendable {
    package var node: NodeNumber
    /// Increases with each start of a home on the node.
    package var incarnation: Int64

    package init(node: NodeNumber, incarnation: Int64) {
        self.node = node
        self.incarnation = incarnation
    }
}
