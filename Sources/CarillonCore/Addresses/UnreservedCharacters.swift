extension String {
    /// The address with its percent-encoded unreserved characters decoded, so that both spellings are one address (RFC 3986
    /// section 6.2.2.2). Other percent-encoded characters are kept.
    package var decodingUnreserved: String {
        guard utf8.contains(UInt8(ascii: "%")) else { return self }
        var decoded: [UInt8] = []
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let character = Self.unreserved(rest.prefix(2)) {
                decoded.append(character)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    /// Returns the unreserved character (RFC 3986 section 2.3) of two hexadecimal digits.
    private static func unreserved(_ digits: Substring.UTF8View) -> UInt8? {
        let values = digits.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard values.count == 2 else { return nil }
        let character = UInt8(values[0] << 4 | values[1])
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            return character
        default:
            return "-._~".utf8.contains(character) ? character : nil
        }
    }
}
