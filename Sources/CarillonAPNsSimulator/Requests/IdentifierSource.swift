/// Generates identifiers from a seed, so that a run can be repeated.
struct IdentifierSource: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// Returns the next value of the SplitMix64 generator.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    static func mixed(_ value: UInt64) -> UInt64 {
        var value = value
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Returns a version 4 UUID in capitals, as APNs writes them.
    mutating func makeUUID() -> String {
        let words = [next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000, next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000]
        return String(unsafeUninitializedCapacity: 36) { buffer in
            var position = 0
            for index in 0..<32 {
                if index == 8 || index == 12 || index == 16 || index == 20 {
                    buffer[position] = UInt8(ascii: "-")
                    position += 1
                }
                let word = index < 16 ? words.first ?? 0 : words.last ?? 0
                buffer[position] = Self.digits[Int(word >> UInt64(60 - index % 16 * 4) & 0xF)]
                position += 1
            }
            return 36
        }
    }
}
