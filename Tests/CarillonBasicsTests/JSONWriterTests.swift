import CarillonBasics
import Foundation
import Testing

struct JSONWriterTests {
    private func text(_ members: (inout JSONWriter) -> Void) -> String {
        String(decoding: JSONWriter.object(members), as: UTF8.self)
    }

    @Test func `members keep their order, and nil members are omitted`() {
        let written = text { json in
            json.member("a", "x")
            json.member("b", nil as String?)
            json.member("c", -7)
            json.member("d", true)
            json.member("e", 0.5)
            json.member("f", base64URL: [251, 255])
            json.member("g", ["h", "i"])
            json.member("j") { inner in
                inner.member("k", 1.0)
                inner.member("l") { _ in }
            }
            json.member("m", [1, 2]) { inner, number in inner.member("n", number) }
            json.member("o", text: Array("null".utf8))
            json.member(untrusted: "p\"", "q")
        }
        #expect(
            written == #"{"a":"x","c":-7,"d":true,"e":0.5,"f":"-_8","g":["h","i"],"j":{"k":1,"l":{}},"#
                + #""m":[{"n":1},{"n":2}],"o":null,"p\"":"q"}"#)
    }

    @Test func `written text is read unchanged, with any characters`() throws {
        var scalars = String.UnicodeScalarView()
        for value in UInt32(0)...0x250 { if let scalar = Unicode.Scalar(value) { scalars.append(scalar) } }
        let value = String(scalars) + "\u{1F514}"
        let written = JSONWriter.object { $0.member("a", value) }
        #expect(JSONValue(parsing: written)?["a"] == .string(value))
        let other = try JSONDecoder().decode([String: String].self, from: Data(written))
        #expect(other == ["a": value])
        // Nothing that need not be is escaped.
        #expect(written.count { $0 == UInt8(ascii: "\\") } == 0x20 + 2 + 1 - 0)
    }
}
