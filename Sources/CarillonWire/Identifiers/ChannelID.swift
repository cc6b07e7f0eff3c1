import CarillonBasics

/// A device's identifier of one of its channels: a UUID that the device chose, written with dashes in lower case.
package struct ChannelID: Hashable, Sendable {
    package let value: Bytes16

    package init(_ value: Bytes16) { self.value = value }

    /// Reads `8-4-4-4-12` hexadecimal digits of either case. A UUID without dashes is rejected, because Firefox would not
    /// recognize it in an answer.
    package init?(_ text: some StringProtocol) {
        var value = Bytes16(high: 0, low: 0)
        var place = 0
        for character in text.utf8 {
            if Self.dashes.contains(place) {
                guard character == UInt8(ascii: "-") else { return nil }
            } else {
                guard place < 36, let digit = Hexadecimal.value(of: character) else { return nil }
                value.high = value.high << 4 | value.low >> 60
                value.low = value.low << 4 | UInt64(digit)
            }
            place += 1
        }
        guard place == 36 else { return nil }
        self.value = value
    }

    /// The positions of the dashes.
    private static let dashes = [8, 13, 18, 23]

    /// Returns a new random identifier (a UUID of version 4, RFC 9562 section 5.4).
    package static func random(using generator: inout some RandomNumberGenerator) -> ChannelID {
        var value = Bytes16.random(using: &generator)
        value.high = value.high & ~0xF000 | 0x4000
        value.low = value.low & ~(3 << 62) | 2 << 62
        return ChannelID(value)
    }
}

extension ChannelID: CustomStringConvertible {
    package var description: String {
        var text: [UInt8] = []
        text.reserveCapacity(36)
        for byte in value.bytes {
            if Self.dashes.contains(text.count) { text.append(UInt8(ascii: "-")) }
            Hexadecimal.append(byte, to: &text)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
