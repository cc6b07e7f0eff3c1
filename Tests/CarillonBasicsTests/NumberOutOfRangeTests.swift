import CarillonBasics
import Testing

/// Numbers that `Double` cannot represent, and their places.
struct NumberOutOfRangeTests {
    @Test(arguments: [
        ("1e999", "", 1, 1), (" -1.5e+400 ", "", 1, 2), (#"{"a":1,"b":{"c":[0,1e999]}}"#, "b.c.1", 1, 20),
        ("{\n  \"a\": [\n1e309]}", "a.0", 3, 1), (#"{"a":1e999,"b":[1e999]}"#, "a", 1, 6),
        (String(repeating: "9", count: 400), "", 1, 1),
    ])
    func `the first one is found, with its path, line and column`(text: String, path: String, line: Int, column: Int) throws
    {
        let number = try #require(NumberOutOfRange(in: Array(text.utf8)))
        #expect(number.path.joined(separator: ".") == path)
        #expect(number.line == line && number.column == column)
        #expect(number.clause.contains("line \(line), column \(column)") && !number.clause.contains(number.number))
        #expect(number.clauseWithNumber.contains(number.number))
        #expect(JSONValue(parsing: Array(text.utf8)) == nil)
    }

    @Test func `a long number is cut`() {
        #expect(NumberOutOfRange(in: Array(String(repeating: "9", count: 400).utf8))?.number.count == 32)
    }

    @Test(arguments: [
        "1", "1e308", "1e-999", "0e999", #"{"a":"1e999"}"#, "{", "{\"a\" 1e999}", "", "[01,1e999]", "1e999x", "[1e999",
        #"{"a":1e999,"b":}"#,
    ])
    func `a text without one, or that is no JSON beside it, has none`(text: String) {
        #expect(NumberOutOfRange(in: Array(text.utf8)) == nil)
    }

    @Test func `values that are nested too deep are not searched`() {
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + "1e999" + String(repeating: "]", count: depth)).utf8)
        }
        #expect(NumberOutOfRange(in: nested(32))?.path.count == 32)
        #expect(NumberOutOfRange(in: nested(33)) == nil)
        #expect(NumberOutOfRange(in: nested(33), depth: 40) != nil)
    }
}
