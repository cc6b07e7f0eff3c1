import CarillonWire
import TestSupport
import Testing

struct StructuredFieldTests {
    @Test(arguments: [
        ("?1", "?1"), ("  42 ", "42"), ("-1.5;a", "-1.5"), ("token/x;a=b;c=\"d;e\"", "token/x"), (":AAEC=:;q=1", ":AAEC=:"),
        ("\"a;b\\\"c\";x", "\"a;b\\\"c\""), ("@1659578233", "@1659578233"), ("%\"f%c3%bc\";x=?0", "%\"f%c3%bc\""),
    ])
    func `an item is returned without its parameters`(text: String, item: String) {
        #expect(StructuredField.item(text) == item)
    }

    @Test(arguments: ["", " ", ";a", "1;", "1;=2", "1;a=", "1 2", "1,2", "\"a", ":AA", "a b", "(1)", "ü", "1;ü", "1;a=\"\\"])
    func `a malformed item has no value`(text: String) {
        #expect(StructuredField.item(text) == nil)
    }

    @Test func `a dictionary has its members in order`() throws {
        let members = try #require(StructuredField.dictionary("a=1;x , B-2=:AA==:;y=\"z,\",\tc;d=2, *e=?0"))
        #expect(members.map(\.key) == ["a", "b-2", "c", "*e"])
        #expect(members.map(\.item) == ["1", ":AA==:", "?1", "?0"])
        #expect(StructuredField.dictionary("")?.isEmpty == true)
    }

    @Test(arguments: ["a=1,", "a=1,,b", "a=", "=1", "1=2", "a=1 b=2", "a=(1 2)", ",", "a;"])
    func `a malformed dictionary has no members`(text: String) {
        #expect(StructuredField.dictionary(text) == nil)
    }

    @Test func `any bytes are read without a fault`() {
        var random = SeededRandom.forTest()
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                Array("a1?:;=,\"\\%@ \t*(é".utf8).randomElement(using: &random) ?? 0
            }
            let text = String(decoding: bytes, as: UTF8.self)
            _ = StructuredField.item(text)
            for member in StructuredField.dictionary(text) ?? [] { #expect(!member.item.isEmpty, "\(bytes)") }
        }
    }
}
