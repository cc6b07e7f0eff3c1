/// Ordered keys, each with a number, in blocks of limited size. An insertion into a million keys moves a few hundred.
struct OrderedBlocks<Key: Comparable> {
    struct Block {
        var keys: [Key]
        var numbers: [Int32]
    }

    /// A position before a key or after the last key.
    struct Place: Comparable {
        var block: Int
        var offset: Int

        static func < (one: Place, other: Place) -> Bool {
            one.block == other.block ? one.offset < other.offset : one.block < other.block
        }
    }

    private(set) var blocks: [Block] = []
    static var largest: Int { 256 }

    var isEmpty: Bool { blocks.isEmpty }
    var least: Key? { blocks.first?.keys.first }
    var begin: Place { Place(block: 0, offset: 0) }
    var end: Place { Place(block: blocks.count, offset: 0) }

    /// Returns the place before the first key that is not less. The keys that are less must come before all others.
    func first(notLess isLess: (Key) -> Bool) -> Place {
        var (low, high) = (0, blocks.count)
        while low < high {
            let middle = (low + high) / 2
            let keys = blocks[middle].keys
            if isLess(keys[keys.count - 1]) { low = middle + 1 } else { high = middle }
        }
        guard low < blocks.count else { return end }
        let keys = blocks[low].keys
        var (first, last) = (0, keys.count)
        while first < last {
            let middle = (first + last) / 2
            if isLess(keys[middle]) { first = middle + 1 } else { last = middle }
        }
        return Place(block: low, offset: first)
    }

    /// The number of a key; nil if the key is not stored. Setting a number stores the key, and setting nil removes the key.
    subscript(key: Key) -> Int32? {
        get {
            let place = first { $0 < key }
            guard place < end, blocks[place.block].keys[place.offset] == key else { return nil }
            return blocks[place.block].numbers[place.offset]
        }
        set {
            let place = first { $0 < key }
            let isHere = place < end && blocks[place.block].keys[place.offset] == key
            switch (newValue, isHere) {
            case (let number?, true): blocks[place.block].numbers[place.offset] = number
            case (let number?, false): insert(key, number, at: place)
            case (nil, true): remove(at: place)
            case (nil, false): break
            }
        }
    }

    private mutating func insert(_ key: Key, _ number: Int32, at place: Place) {
        guard !blocks.isEmpty else {
            blocks.append(Block(keys: [key], numbers: [number]))
            return
        }
        // A key that is greater than all others is appended to the last block.
        let isLast = place.block == blocks.count
        let block = isLast ? place.block - 1 : place.block
        let offset = isLast ? blocks[block].keys.count : place.offset
        blocks[block].keys.insert(key, at: offset)
        blocks[block].numbers.insert(number, at: offset)
        guard blocks[block].keys.count > Self.largest else { return }
        // Keys that are inserted in ascending order leave full blocks.
        let kept = isLast ? Self.largest : Self.largest / 2
        let rest = Block(keys: Array(blocks[block].keys[kept...]), numbers: Array(blocks[block].numbers[kept...]))
        blocks[block].keys.removeSubrange(kept...)
        blocks[block].numbers.removeSubrange(kept...)
        blocks.insert(rest, at: block + 1)
    }

    private mutating func remove(at place: Place) {
        blocks[place.block].keys.remove(at: place.offset)
        blocks[place.block].numbers.remove(at: place.offset)
        if blocks[place.block].keys.isEmpty {
            blocks.remove(at: place.block)
        } else if place.block + 1 < blocks.count,
            blocks[place.block].keys.count + blocks[place.block + 1].keys.count <= Self.largest / 2
        {
            let next = blocks.remove(at: place.block + 1)
            blocks[place.block].keys += next.keys
            blocks[place.block].numbers += next.numbers
        }
    }

    /// Calls the closure with the numbers between two places, in the order of their keys.
    func forEach(from first: Place, to last: Place, _ body: (Int32) -> Void) {
        var place = first
        while place < last {
            let numbers = blocks[place.block].numbers
            let stop = place.block == last.block ? last.offset : numbers.count
            for offset in place.offset..<stop { body(numbers[offset]) }
            place = Place(block: place.block + 1, offset: 0)
        }
    }
}
