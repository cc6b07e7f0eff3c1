import Synchronization

/// The permission of a call to use a shard. A move of the shard waits until the call has left.
package final class ShardPass: Sendable {
    private let gate: ShardGate
    private let shard: Shard
    private let hasLeft = Atomic(false)

    /// - Parameter shard: The shard that the call has entered (``ShardGate/enter(_:)``).
    init(of shard: Shard, at gate: ShardGate) {
        self.gate = gate
        self.shard = shard
    }

    /// Leaves the shard. Further calls do nothing.
    package func leave() {
        if !hasLeft.exchange(true, ordering: .relaxed) { gate.leave(shard) }
    }
}
