/// The number of a node of the server. A node is one process that runs homes.
package struct NodeNumber: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    /// The only node of a server with one node.
    package static let only = NodeNumber(1)
}

/// Names one start of a home. A store refuses the writes of a home whose incarnation was removed.
///
/// Shards are not part of the fence. A home releases a shard by a write of its own, after everything of the shard is written.
package struct HomeFence: Hashable, Sendable {
    package var node: NodeNumber
    /// Increases with each start of a home on the node.
    package var incarnation: Int64

    package init(node: NodeNumber, incarnation: Int64) {
        self.node = node
        self.incarnation = incarnation
    }
}
