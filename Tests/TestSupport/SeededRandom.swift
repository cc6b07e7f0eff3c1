import Foundation

/// Chance that can be had again: the seed is printed, and `CARILLON_SEED` sets it.
package struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package static func forTest(_ name: String = #function) -> SeededRandom {
        let given = ProcessInfo.processInfo.environment["CARILLON_SEED"].flatMap(UInt64.init)
        let seed = given ?? UInt64.random(in: .min ... .max)
        print("\(name): CARILLON_SEED=\(seed)")
        return SeededRandom(seed: seed)
    }

    /// SplitMix64.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Seeds of random tests: those of `CARILLON_SEED`, separated by commas, or the number that a test requests.
package enum RandomSeed {
    package static func some(_ count: UInt64) -> [UInt64] { given ?? Array(0..<count) }

    package static func some(_ usual: ClosedRange<UInt64>) -> [UInt64] { given ?? Array(usual) }

    private static var given: [UInt64]? {
        ProcessInfo.processInfo.environment["CARILLON_SEED"]?.split(separator: ",").compactMap { UInt64($0) }
    }
}
