import CarillonCore
import Testing

/// Two sets of one shard each, and the set of all other shards.
struct ShardSets {
    let first: ShardSet
    let second: ShardSet
    let rest: ShardSet

    init(_ first: DeviceSerial, _ second: DeviceSerial) throws {
        let shards = [Shard(of: first), Shard(of: second)]
        try #require(shards[0] != shards[1])
        self.first = ShardSet([shards[0]])
        self.second = ShardSet([shards[1]])
        rest = ShardSet(ShardSet.all.shards.filter { !shards.contains($0) })
    }
}
