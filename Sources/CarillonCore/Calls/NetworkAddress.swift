package import CarillonWire

/// An IP address, stored as bytes. The notation is not kept.
package enum NetworkAddress: Hashable, Sendable {
    case v4(UInt32)
    case v6(Bytes16)

    /// Parses an IPv4 address of four decimal numbers without leading zeros, which is the only form that all programs read alike,
    /// or an IPv6 address in any form (RFC 4291 section 2.2) without a zone.
    package init?(_ text: some StringProtocol) {
        if let address = Self.parseV4(text) {
            self = .v4(address)
        } else if let address = Self.parseV6(text) {
            self = .v6(address)
        } else {
            return nil
        }
    }

    /// - Parameter bytes: The 4 or 16 bytes in network order.
    package init?(bytes: some Collection<UInt8>) {
        if bytes.count == 4 {
            self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        } else if let value = Bytes16(bytes) {
            self = .v6(value)
        } else {
            return nil
        }
    }

    package var bytes: [UInt8] {
        switch self {
        case .v4(let value): value.bigEndianBytes
        case .v6(let value): value.bytes
        }
    }

    private static func parseV4(_ text: some StringProtocol) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var value: UInt32 = 0
        for part in parts {
            guard part.utf8.allSatisfy({ (0x30...0x39).contains($0) }), part == "0" || !part.hasPrefix("0"),
                let number = UInt8(part)
            else { return nil }
            value = value << 8 | UInt32(number)
        }
        return value
    }

    private static func parseV6(_ text: some StringProtocol) -> Bytes16? {
        guard text.utf8.count <= 45, text.contains(":") else { return nil }
        let halves = text.split(separator: "::", maxSplits: 2, omittingEmptySubsequences: false)
        switch halves.count {
        case 1:
            guard let groups = groups(halves[0]), groups.count == 8 else { return nil }
            return value(groups)
        case 2:
            guard let head = groups(halves[0], mayEndInV4: false), let tail = groups(halves[1]),
                head.count + tail.count < 8
            else { return nil }
            return value(head + Array(repeating: 0, count: 8 - head.count - tail.count) + tail)
        default:
            return nil
        }
    }

    private static func groups(_ text: some StringProtocol, mayEndInV4: Bool = true) -> [UInt16]? {
        if text.isEmpty { return [] }
        var groups: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, mayEndInV4, part.contains(".") {
                guard let address = parseV4(part) else { return nil }
                groups += [UInt16(address >> 16), UInt16(truncatingIfNeeded: address)]
            } else {
                guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy(\.isHexadecimalDigit),
                    let group = UInt16(part, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups
    }

    private static func value(_ groups: [UInt16]) -> Bytes16? { Bytes16(groups.flatMap(\.bigEndianBytes)) }
}

extension NetworkAddress: CustomStringConvertible {
    /// An IPv6 address is written in full, without `::`.
    package var description: String {
        switch self {
        case .v4(let value):
            value.bigEndianBytes.map(String.init).joined(separator: ".")
        case .v6(let value):
            stride(from: 0, to: 16, by: 2)
                .map { String(UInt16(value.bytes[$0]) << 8 | UInt16(value.bytes[$0 + 1]), radix: 16) }
                .joined(separator: ":")
        }
    }
}

extension UInt8 {
    var isHexadecimalDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
