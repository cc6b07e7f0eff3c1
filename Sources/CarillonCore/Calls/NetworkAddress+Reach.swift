import CarillonWire

extension NetworkAddress {
    /// Whether the address belongs to the public Internet, and not to a private network.
    ///
    /// The tables are IANA's special-purpose registries for IPv4 and IPv6 (RFC 6890). If an IPv6 address contains the IPv4
    /// address to which it leads, the IPv4 address decides.
    package var isPublic: Bool {
        switch self {
        case .v4(let value): !Self.specialV4.contains { $0.contains(value) }
        case .v6(let value): Self.isPublic(value)
        }
    }

    private struct Block {
        var prefix: UInt32
        var length: UInt32

        func contains(_ value: UInt32) -> Bool { (value ^ prefix) >> (32 - length) == 0 }
    }

    private static let specialV4 =
        ([
            (0, 0, 0, 0, 8),  // this network, and the unspecified address
            (10, 0, 0, 0, 8), (172, 16, 0, 0, 12), (192, 168, 0, 0, 16),  // private (RFC 1918)
            (100, 64, 0, 0, 10),  // shared by carriers (RFC 6598)
            (127, 0, 0, 0, 8),  // loopback
            (169, 254, 0, 0, 16),  // link-local, where clouds serve their metadata
            (192, 0, 0, 0, 24),  // protocol assignments
            (192, 0, 2, 0, 24), (198, 51, 100, 0, 24), (203, 0, 113, 0, 24),  // documentation
            (192, 88, 99, 0, 24),  // 6to4 relays, withdrawn
            (198, 18, 0, 0, 15),  // benchmarks
            (224, 0, 0, 0, 4),  // multicast
            (240, 0, 0, 0, 4),  // reserved, and broadcast
        ] as [(UInt32, UInt32, UInt32, UInt32, UInt32)]).map { (a, b, c, d, length) in
            Block(prefix: a << 24 | b << 16 | c << 8 | d, length: length)
        }

    private static func isPublic(_ value: Bytes16) -> Bool {
        let high = value.high
        let v4 = { (bits: UInt64) in NetworkAddress.v4(UInt32(truncatingIfNeeded: bits)) }
        if high == 0, value.low >> 32 == 0xFFFF { return v4(value.low).isPublic }  // ::ffff:0:0/96, mapped
        if high == 0x0064_FF9B_0000_0000, value.low >> 32 == 0 { return v4(value.low).isPublic }  // NAT64 (RFC 6052)
        guard high >> 61 == 1 else { return false }  // all assigned addresses are in 2000::/3
        return switch high >> 32 {
        case 0x2002_0000...0x2002_FFFF: v4(high >> 16).isPublic  // 6to4
        case 0x2001_0000...0x2001_01FF: false  // 2001::/23: Teredo, benchmarks, ORCHID and other assignments
        case 0x2001_0DB8: false  // documentation
        case 0x3FFF_0000...0x3FFF_0FFF: false  // documentation
        default: true
        }
    }
}
