/// A set of shards.
package struct ShardSet: Hashable, Sendable {
    /// One bit for each shard.
    private var words: [UInt64]

    private init(eachWord word: UInt64) { words = Array(repeating: word, count: Shard.count / UInt64.bitWidth) }

    package static let all = ShardSet(eachWord: .max)
    package static let none = ShardSet(eachWord: 0)

    package init(_ shards: some Sequence<Shard>) {
        self = .none
        for shard in shards { insert(shard) }
    }

    /// - Parameter bitmap: The bytes of ``bitmap``. The result is nil for another number of bytes.
    package init?(bitmap: some Collection<UInt8>) {
        guard bitmap.count == Shard.count / 8 else { return nil }
        self = .none
        for (place, byte) in bitmap.enumerated() { words[place / 8] |= UInt64(byte) << UInt64(place % 8 * 8) }
    }

    /// One bit for each shard, in the order of their numbers. The first shard of a byte is the lowest bit.
    package var bitmap: [UInt8] {
        words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64($0 * 8)) } }
    }

    package func contains(_ shard: Shard) -> Bool { words[Self.word(of: shard)] & Self.bit(of: shard) != 0 }

    package mutating func insert(_ shard: Shard) { words[Self.word(of: shard)] |= Self.bit(of: shard) }

    package mutating func remove(_ shard: Shard) { words[Self.word(of: shard)] &= ~Self.bit(of: shard) }

    /// The shards of the set, in the order of their numbers.
    package var shards: [Shard] { (0..<UInt16(Shard.count)).map(Shard.init(number:)).filter(contains) }

    private static func word(of shard: Shard) -> Int { Int(shard.number) / UInt64.bitWidth }
    private static func bit(of shard: Shard) -> UInt64 { 1 << UInt64(Int(shard.number) % UInt64.bitWidth) }
}
