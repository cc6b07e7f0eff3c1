extension String {
    /// The address with its percent-encoded unreserved characters decoded, so that both spellings are one address (RFC 3986
    /// section 6.2.2.2). Other percent-encoded characters stay encoded, as does everything after an incomplete escape.
    package var decodingUnreserved: String {
        guard utf8.contains(UInt8(ascii: "%")) else { return self }
        var decoded: [UInt8] = []
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard let character = Self.character(digits) else {
                // A decoded character after this byte could complete the escape.
                decoded.append(byte)
                decoded += rest
                break
            }
            if Self.isUnreserved(character) {
                decoded.append(character)
            } else {
                decoded.append(byte)
                decoded += digits
            }
            rest = rest.dropFirst(2)
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    /// Returns the byte of two hexadecimal digits.
    private static func character(_ digits: Substring.UTF8View) -> UInt8? {
        let values = digits.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        return values.count == 2 ? UInt8(values[0] << 4 | values[1]) : nil
    }

    /// RFC 3986 section 2.3.
    private static func isUnreserved(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~".utf8.contains(character)
        }
    }
}
