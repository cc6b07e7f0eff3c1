import CarillonBasics
import Foundation
import TestSupport
import Testing

struct JSONValueTests {
    private func parse(_ text: String) -> JSONValue? { JSONValue(parsing: Array(text.utf8)) }

    @Test(
        arguments: [
            ("null", .null), (" true ", .bool(true)), ("false", .bool(false)), ("0", .integer(0)), ("-17", .integer(-17)),
            ("1e2", .integer(100)), ("1.0", .integer(1)), ("0.5", .number(0.5)),
            ("123450000000000000000", .number(1.2345e20)), ("[]", .array([])), ("{ }", .object([])),
            (#""""#, .string("")), (#""a\"\\\/\b\f\n\r\té""#, .string("a\"\\/\u{8}\u{C}\n\r\t\u{e9}")),
            (#""\u00e9\ud83d\udd14\u0000""#, .string("\u{e9}\u{1F514}\u{0}")),
            ("[1,[2 , 3]\n]", .array([.integer(1), .array([.integer(2), .integer(3)])])),
            (
                #"{"a":1,"b":{"c":[true]}}"#,
                .object([
                    .init(name: "a", value: .integer(1)),
                    .init(name: "b", value: .object([.init(name: "c", value: .array([.bool(true)]))])),
                ])
            ),
        ] as [(String, JSONValue)])
    func `a JSON text is read`(text: String, value: JSONValue) {
        #expect(parse(text) == value)
    }

    @Test(
        arguments: [
            "", " ", "nul", "truely", "tru", "01", "-", "-01", "+1", "1.", ".5", "1e", "1e+", "0x1", "NaN", "1e999", "[1,]",
            "[,1]",
            "[1 2]", "[", "{", "{]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{a:1}", "{\"a\":1 \"b\":2}", "1 2", "\"",
            "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud83d\"", "\"\\ud83d\\n\"", "\"\\udd14\"", "\"\u{1}\"",
            "'a'",
            "/**/1", "\u{FEFF}1",
        ])
    func `a text that is not JSON is refused`(text: String) {
        #expect(parse(text) == nil)
    }

    @Test func `invalid UTF-8 in a string is refused`() {
        #expect(JSONValue(parsing: [0x22, 0xFF, 0x22]) == nil)
        #expect(JSONValue(parsing: [0x22, 0x5C, 0x6E, 0xC3, 0x22]) == nil)
    }

    @Test func `nesting has a bound`() {
        func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
        #expect(parse(nested(33)) != nil)
        #expect(parse(nested(34)) == nil)
        #expect(parse(String(repeating: "[", count: 60_000)) == nil)
    }

    @Test func `a value is encoded as it was read`() throws {
        let text = #"{"a":[1,0.5,null,true,"x"],"b":{"c":{}}}"#
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(try #require(parse(text))), as: UTF8.self) == text)
    }

    @Test func `the last member of a name counts`() {
        #expect(parse(#"{"a":1,"a":2}"#)?["a"] == .integer(2))
    }

    /// Foundation's reader determines whether a text that was changed at random is JSON; but it accepts a trailing comma.
    @Test func `random changes are judged as by another reader`() {
        var random = SeededRandom.forTest()
        let seed = Array(#"{"messageType":"ack","n":-1.5e3,"updates":[{"version":"x\u00e9\n","code":100},null,true]}"#.utf8)
        let alphabet = Array(#"{}[]",:\u0123456789eE.+-truefalsn "#.utf8)
        for _ in 0..<20_000 {
            var text = seed
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: text.indices, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text[index] = alphabet.randomElement(using: &random) ?? 0
                case 1: text.remove(at: index)
                default: text.insert(alphabet.randomElement(using: &random) ?? 0, at: index)
                }
            }
            let written = String(decoding: text, as: UTF8.self)
            if written.contains(/,\s*[\]}]/) { continue }
            let other = try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)
            let ours = JSONValue(parsing: text)
            #expect((ours != nil) == (other != nil), "\(written)")
        }
    }

    private static let flaws: [(String, JSONFlaw?)] = [
        (#"{"a":"\ud83d"}"#, .halfPair), (#"{"a":["\ud83d\u0041"]}"#, .halfPair), (#"{"\udc00":1}"#, .halfPair),
        (#" {"a":"\ud83d\ud83d"} "#, .halfPair),
        ("{\"a\":" + String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000) + "}", .tooDeep),
        (#"{"a":"\ud8"}"#, nil), ("[]", nil), (#"{"a":1e999}"#, nil), ("{", nil), ("", nil), (#"{"a":"\x"}"#, nil),
    ]

    @Test(arguments: flaws)
    func `the reason why an object cannot be read is found`(text: String, flaw: JSONFlaw?) {
        #expect(JSONValue(parsing: Array(text.utf8)) == nil || text == "[]")
        #expect(JSONFlaw(inObject: Array(text.utf8)) == flaw)
    }
}
