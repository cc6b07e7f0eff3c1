import TestSupport
import Testing

@testable import CarillonCore

struct OrderedBlocksTests {
    @Test(arguments: RandomSeed.some(3))
    func `keys stay in order in blocks of limited size, and none is lost`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var blocks = OrderedBlocks<Int64>()
        var model: [Int64: Int32] = [:]
        func check() {
            let keys = blocks.blocks.flatMap(\.keys)
            #expect(keys == model.keys.sorted() && blocks.blocks.flatMap(\.numbers) == keys.map { model[$0] })
            #expect(blocks.blocks.allSatisfy { (1...OrderedBlocks<Int64>.largest).contains($0.keys.count) })
            for _ in 0..<20 {
                let (one, other) = (
                    Int64.random(in: -10...9000, using: &random), Int64.random(in: -10...9000, using: &random)
                )
                let (least, most) = (min(one, other), max(one, other))
                var found: [Int32] = []
                blocks.forEach(from: blocks.first { $0 < least }, to: blocks.first { $0 < most }) { found.append($0) }
                #expect(found == model.filter { least <= $0.key && $0.key < most }.sorted { $0.key < $1.key }.map(\.value))
            }
        }
        // Inserted in order and at random, and removed at random, in order and from the end.
        for key in Int64(0)..<1500 { (blocks[key], model[key]) = (Int32(key), Int32(key)) }
        check()
        #expect(blocks.blocks.count < 8, "full ones are left behind")
        for number in Int32(0)..<6000 {
            let key = Int64.random(in: 0...8999, using: &random)
            if Int.random(in: 0..<3, using: &random) == 0 {
                (blocks[key], model[key]) = (nil, nil)
            } else {
                (blocks[key], model[key]) = (number, number)
                #expect(blocks[key] == number)
            }
        }
        check()
        for key in Int64(2000)..<8000 { (blocks[key], model[key]) = (nil, nil) }
        check()
        #expect(blocks.blocks.count < 30, "small ones become one")
        for key in (Int64(0)..<9000).reversed() { (blocks[key], model[key]) = (nil, nil) }
        #expect(blocks.isEmpty && blocks[5] == nil)
    }
}
