import Foundation

/// The same numbers for the same seed (SplitMix64). The seed is `CARILLON_TEST_SEED`, or another one each time, and is
/// printed.
struct SeededRandom: RandomNumberGenerator {
    let seed: UInt64
    private var state: UInt64

    init(_ test: String = #function) {
        let given = ProcessInfo.processInfo.environment["CARILLON_TEST_SEED"].flatMap { UInt64($0) }
        seed = given ?? UInt64.random(in: 0...UInt64(UInt32.max))
        state = seed
        print("\(test): CARILLON_TEST_SEED=\(seed)")
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
