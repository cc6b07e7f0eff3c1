/// Lower-case hexadecimal text.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        String(unsafeUninitializedCapacity: bytes.count * 2) { output in
            var index = 0
            for byte in bytes {
                output[index] = digits[Int(byte >> 4)]
                output[index + 1] = digits[Int(byte & 15)]
                index += 2
            }
            return index
        }
    }

    package static func append(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(digits[Int(byte >> 4)])
        output.append(digits[Int(byte & 15)])
    }

    /// Decodes digits of either case. Returns nil for an odd length or any other character.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        guard text.utf8.count.isMultiple(of: 2) else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        for character in text.utf8 {
            guard let value = value(of: character) else { return nil }
            if let first = high {
                output.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return output
    }

    /// Returns the value of a digit of either case; nil for any other character.
    package static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
