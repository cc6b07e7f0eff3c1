import NIOCore

extension ByteBuffer {
    /// Returns the offset of a text in the readable bytes, without regard to the case of ASCII letters. The text must be in
    /// lower case.
    func offset(of text: StaticString, from start: Int = 0) -> Int? {
        withUnsafeReadableBytes { bytes in
            let count = text.utf8CodeUnitCount
            let wanted = text.utf8Start
            var at = start
            while at + count <= bytes.count {
                var matched = 0
                while matched < count, Self.lowered(bytes[at + matched]) == wanted[matched] { matched += 1 }
                if matched == count { return at }
                at += 1
            }
            return nil
        }
    }

    /// Returns the value of a member of a JSON object. The value is a text without escapes. The name is written as `"name":"`
    /// in lower case.
    func text(after name: StaticString) -> ByteBuffer? {
        guard let place = offset(of: name) else { return nil }
        let start = readerIndex + place + name.utf8CodeUnitCount
        guard let end = self.viewBytes(at: start, length: writerIndex - start)?.firstIndex(of: UInt8(ascii: "\""))
        else { return nil }
        return getSlice(at: start, length: end - start)
    }

    /// Returns the number at an offset of the readable bytes. Spaces before the number are skipped.
    func number(at offset: Int) -> Int {
        withUnsafeReadableBytes { bytes in
            var at = offset
            while at < bytes.count, bytes[at] == UInt8(ascii: " ") { at += 1 }
            var number = 0
            while at < bytes.count, case let digit = bytes[at], digit >= 48, digit <= 57 {
                number = number * 10 + Int(digit - 48)
                at += 1
            }
            return number
        }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { byte >= 65 && byte <= 90 ? byte | 0x20 : byte }
}
