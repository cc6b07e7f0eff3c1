/// Checks the encoding of Ed25519 public keys (RFC 8032 section 5.1.2). The library that verifies signatures checks only the
/// length.
package enum Ed25519Encoding {
    /// Whether the bytes are the canonical encoding of a number below the field's prime, and not one of the eight points of small
    /// order. Anybody can make signatures that are valid for such a point.
    ///
    /// The points of small order have five values of y. For two of them x is 0, and then a set sign bit is not canonical (section
    /// 5.1.3). The same comparison therefore rejects these encodings.
    package static func isAcceptable(_ key: [UInt8]) -> Bool {
        guard key.count == 32 else { return false }
        var y = key
        y[31] &= 0x7F
        return isBelowPrime(y) && !smallOrders.contains(y)
    }

    /// The prime is 2^255 - 19. Bytes are little-endian.
    private static func isBelowPrime(_ y: [UInt8]) -> Bool {
        !(y[0] >= 0xED && y[31] == 0x7F && y[1..<31].allSatisfy { $0 == 0xFF })
    }

    private static let smallOrders: [[UInt8]] = [
        [UInt8](repeating: 0, count: 32),
        [1] + [UInt8](repeating: 0, count: 31),
        [0xEC] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
        [
            0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF, 0x98, 0xF0,
            0xD5, 0xDF, 0xAC, 0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05,
        ],
        [
            0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10, 0x67, 0x0F,
            0x2A, 0x20, 0x53, 0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A,
        ],
    ]
}
