import Synchronization

/// The place of a call in a shard. A move of the shard waits until the call has left.
package final class ShardPass: Sendable {
    private let gate: ShardGate
    private let shard: Shard
    private let hasLeft = Atomic(false)

    /// - Parameter shard: The call has entered the shard (``ShardGate/enter(_:)``).
    init(of shard: Shard, at gate: ShardGate) {
        self.gate = gate
        self.shard = shard
    }

    /// Does nothing after the first time.
    package func leave() {
        if !hasLeft.exchange(true, ordering: .relaxed) { gate.leave(shard) }
    }
}
