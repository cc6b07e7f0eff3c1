import CarillonWire

extension NetworkAddress {
    /// The address under which its owner is counted. IPv6 networks are assigned in blocks of 2^64 addresses.
    package var owner: NetworkAddress {
        guard case .v6(let value) = self else { return self }
        // IPv4 that is written as IPv6 (RFC 4291 section 2.5.5.2), for example by a proxy that listens on both.
        if value.high == 0, value.low >> 32 == 0xFFFF { return .v4(UInt32(truncatingIfNeeded: value.low)) }
        return .v6(Bytes16(high: value.high, low: 0))
    }

    /// Whether this is an address of this machine, where a proxy can run.
    package var isLoopback: Bool {
        switch self {
        case .v4(let value): value >> 24 == 127
        case .v6(let value): value.high == 0 && (value.low == 1 || value.low >> 24 == 0xFF_FF7F)
        }
    }
}
