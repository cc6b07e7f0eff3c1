/// The part of HPACK's Huffman code (RFC 7541 appendix B) for the characters of device tokens, paths and identifiers.
enum HuffmanCode {
    /// The code and the length in bits of each byte; the length is 0 for a byte that this part does not contain.
    private static let codes: [(code: UInt32, bits: UInt8)] = {
        var codes = [(code: UInt32, bits: UInt8)](repeating: (0, 0), count: 256)
        func set(_ characters: String, _ bits: UInt8, from first: UInt32) {
            for (offset, byte) in characters.utf8.enumerated() { codes[Int(byte)] = (first + UInt32(offset), bits) }
        }
        set("012aceiost", 5, from: 0)
        set(" %-./3456789=A_bdfghlmnpru", 6, from: 0x14)
        set(":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz", 7, from: 0x5C)
        set("&*,;XZ", 8, from: 0xF8)
        return codes
    }()

    /// Encodes text; the result has at most as many bytes as the text.
    /// - Returns: the number of bytes written; nil if the text has other characters or would not become shorter.
    static func encode(_ text: UnsafeBufferPointer<UInt8>, into target: UnsafeMutableRawBufferPointer) -> Int? {
        codes.withUnsafeBufferPointer { codes in
            var pending: UInt64 = 0
            var bits: UInt64 = 0
            var written = 0
            for byte in text {
                let (code, length) = codes[Int(byte)]
                guard length > 0 else { return nil }
                pending = pending << UInt64(length) | UInt64(code)
                bits += UInt64(length)
                if bits >= 32 {
                    guard written + 4 <= target.count else { return nil }
                    bits -= 32
                    target.storeBytes(
                        of: UInt32(truncatingIfNeeded: pending >> bits).bigEndian, toByteOffset: written, as: UInt32.self)
                    written += 4
                }
            }
            while bits >= 8 {
                guard written < target.count else { return nil }
                bits -= 8
                target[written] = UInt8(truncatingIfNeeded: pending >> bits)
                written += 1
            }
            if bits > 0 {
                guard written < target.count else { return nil }
                // The last byte is filled with ones, the beginning of the end-of-string code.
                target[written] = UInt8(truncatingIfNeeded: pending << (8 - bits) | (0xFF >> bits))
                written += 1
            }
            return written
        }
    }
}
