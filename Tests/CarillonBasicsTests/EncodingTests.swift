import CarillonBasics
import Testing

struct EncodingTests {
    @Test(arguments: 0...40)
    func `base64url is decoded to the encoded bytes`(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
        let text = Base64URL.encode(bytes)
        #expect(Base64URL.decode(text) == bytes)
        #expect(text.utf8.count == Base64URL.encodedLength(of: count))
        #expect(!text.contains("="))
    }

    @Test(arguments: [("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zg", "f"), ("-_-_", nil), ("+/+/", nil)])
    func `the lenient reader accepts both alphabets, padded or not`(text: String, expected: String?) {
        let decoded = Base64URL.decodeLeniently(text)
        #expect(decoded == (expected.map { Array($0.utf8) } ?? [0xFB, 0xFF, 0xBF]))
    }

    @Test(arguments: ["Zg==", "Zm8=", "+/+/", "Zh", "Zn", "Zm9", "Zm-", "_z", " Zm9v", "Zm9v ", "Zm\n9v", "Zm9v\u{0}"])
    func `the strict reader accepts only the form that the writer writes`(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test func `two texts of one length never decode to the same bytes`() {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/="
        var texts: [[UInt8]: String] = [:]
        for first in alphabet {
            for second in alphabet {
                let text = "\(first)\(second)"
                guard let bytes = Base64URL.decode(text) else { continue }
                #expect(texts.updateValue(text, forKey: bytes) == nil)
                #expect(Base64URL.encode(bytes) == text)
            }
        }
        #expect(texts.count == 256)
    }

    @Test(arguments: ["A", "AAAAA", "A=", "AA=", "AAA==", "====", "A A", "Zg==Zg", "é"])
    func `a text that is not base64url is refused`(text: String) {
        #expect(Base64URL.decode(text) == nil && Base64URL.decodeLeniently(text) == nil)
    }

    @Test(arguments: [("", []), ("00", [0]), ("0aFf", [10, 255])] as [(String, [UInt8])])
    func `hexadecimal is written small and read in either case`(text: String, bytes: [UInt8]) {
        #expect(Hexadecimal.decode(text) == bytes)
        #expect(Hexadecimal.encode(bytes) == text.lowercased())
    }

    @Test(arguments: ["0", "0g", "000", " 00", "é0"])
    func `a text that is not hexadecimal is refused`(text: String) { #expect(Hexadecimal.decode(text) == nil) }
}
