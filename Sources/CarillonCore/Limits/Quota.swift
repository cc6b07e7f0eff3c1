import Metrics
import Synchronization

/// Counts the units of a resource that each key has, such as connections of an address, and applies a quota.
package final class Quota<Key: Hashable & Sendable>: Sendable {
    private final class Shard: Sendable {
        let counts = Mutex<[Key: Int]>([:])
    }

    package let limit: Int
    private let shards: [Shard]
    private let refused: Counter

    /// - Parameter subject: The value of the label `of` of the counter of refusals.
    package init(limit: Int, of subject: String) {
        self.limit = limit
        shards = (0..<16).map { _ in Shard() }
        refused = ServerMetric.quotaRefusals.counter(subject)
    }

    /// Returns false, and counts a refusal, if the key would exceed its quota. The caller must release the units.
    package func take(_ key: Key, _ units: Int = 1) -> Bool {
        let isFree = shard(of: key).counts.withLock { counts in
            let count = counts[key, default: 0]
            guard count + units <= limit else { return false }
            counts[key] = count + units
            return true
        }
        if !isFree { refused.increment() }
        return isFree
    }

    package func release(_ key: Key, _ units: Int = 1) {
        shard(of: key).counts.withLock { counts in
            guard let count = counts[key] else { return }
            counts[key] = count > units ? count - units : nil
        }
    }

    /// The number of units that a key has.
    package func count(of key: Key) -> Int { shard(of: key).counts.withLock { $0[key, default: 0] } }

    private func shard(of key: Key) -> Shard { shards[Int(UInt(bitPattern: key.hashValue) % UInt(shards.count))] }
}
