/// Base64 in the URL-safe alphabet without padding (RFC 4648 section 5). Web Push uses this form for keys, tokens and bodies.
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() {
            values[Int(character)] = UInt8(value)
        }
        values[Int(UInt8(ascii: "+"))] = 62
        values[Int(UInt8(ascii: "/"))] = 63
        return values
    }()

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        var output: [UInt8] = []
        append(Array(bytes), to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends the encoding to a text under construction, without an intermediate string.
    package static func append(_ bytes: [UInt8], to output: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { append($0, to: &output) }
    }

    package static func encodedLength(of count: Int) -> Int { (count * 4 + 2) / 3 }

    /// Decodes only the text that ``encode(_:)`` returns for the same bytes (RFC 7515 section 2, RFC 4648 section 3.5). Returns
    /// nil for any other text: padding, white space, characters of the other alphabet, or unused bits that are set.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var text = String(text)
        return text.withUTF8 { text in
            decode(text).flatMap { $0.isCanonical ? $0.bytes : nil }
        }
    }

    /// Decodes either alphabet, padded or not, and ignores unused bits. Returns nil for any other text, including a dangling
    /// character.
    ///
    /// Use this function for content that the server passes on, and for VAPID public keys, which libraries pad. Never use it for
    /// a signature, a secret or the key of a user.
    package static func decodeLeniently(_ text: some StringProtocol) -> [UInt8]? {
        var text = String(text)
        return text.withUTF8 { decode($0)?.bytes }
    }

    private static func decode(_ text: UnsafeBufferPointer<UInt8>) -> (bytes: [UInt8], isCanonical: Bool)? {
        var output: [UInt8] = []
        output.reserveCapacity(text.count * 3 / 4)
        var bits: UInt32 = 0
        var bitCount = 0
        var characters = 0
        var padding = 0
        var isURLSafe = true
        for character in text {
            if character == UInt8(ascii: "=") {
                padding += 1
                continue
            }
            let value = values[Int(character)]
            guard value != 0xFF, padding == 0 else { return nil }
            if character == UInt8(ascii: "+") || character == UInt8(ascii: "/") { isURLSafe = false }
            characters += 1
            bits = bits << 6 | UInt32(value)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                output.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
            }
        }
        guard characters % 4 != 1, padding == 0 || (characters + padding) % 4 == 0, padding <= 2 else { return nil }
        return (output, isURLSafe && padding == 0 && bits & (1 << UInt32(bitCount) - 1) == 0)
    }

    private static func append(_ bytes: UnsafeBufferPointer<UInt8>, to output: inout [UInt8]) {
        let length = encodedLength(of: bytes.count)
        // Appending single bytes would check the capacity for each byte.
        output += [UInt8](unsafeUninitializedCapacity: length) { text, count in
            alphabet.withUnsafeBufferPointer { alphabet in
                var place = 0
                for start in stride(from: 0, to: bytes.count, by: 3) {
                    let group =
                        UInt32(bytes[start]) << 16 | UInt32(start + 1 < bytes.count ? bytes[start + 1] : 0) << 8
                        | UInt32(start + 2 < bytes.count ? bytes[start + 2] : 0)
                    var shift: UInt32 = 18
                    for _ in 0..<min(4, length - place) {
                        text[place] = alphabet[Int(group >> shift & 0x3F)]
                        shift &-= 6
                        place += 1
                    }
                }
            }
            count = length
        }
    }
}
