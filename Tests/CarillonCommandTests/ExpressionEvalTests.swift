import CarillonBasics
import Testing

@testable import CarillonCommand

struct ExpressionEvalTests {
    private func answer(_ line: String) -> JSONValue? {
        JSONValue(parsing: ExpressionEvalCommand.answer(to: Array(line.utf8)))
    }

    @Test(arguments: [
        (#""x","types":{"x":"int"},"variables":{"x":{"string":"a"}}"#, "variable_type"),
        (#""x","types":{"x":"list(int)"},"variables":{"x":{"list":[{"int":"1"},{"uint":"1"}]}}"#, "variable_type"),
        (
            #""x","types":{"x":"map(string, int)"},"variables":{"x":{"map":[[{"string":"a"},{"double":1}]]}}"#,
            "variable_type"
        ),
        (#""x","types":{"x":"int"},"variables":{"x":{"null":null}}"#, "variable_type"),
        (#""sized('a')""#, "no_such_overload"), (#""x","variables":{"x":{"null":5}}"#, "line"),
        (#""x","variables":{"x":{"uint":"-0"}}"#, "line"), (#""x","variables":{"x":{"type":"dyn"}}"#, "line"),
    ])
    func `a value that does not fit is refused with a code`(rest: String, code: String) {
        #expect(answer(#"{"expr":\#(rest)}"#)?["code"] == .string(code))
    }

    @Test(arguments: [
        (#"{"x":"dyn"}"#, #"{"string":"a"}"#), (#"{"x":"list(dyn)"}"#, #"{"list":[{"int":"1"},{"uint":"1"}]}"#),
        (#"{"x":"timestamp"}"#, #"{"null":null}"#), (#"{"x":"map(string, int)"}"#, #"{"map":[]}"#),
        (#"{"x":"type"}"#, #"{"type":"int"}"#), (#"{"x":"double"}"#, #"{"double":"-0.0"}"#),
    ])
    func `a value that fits is accepted unchanged`(types: String, value: String) {
        let given = answer(#"{"expr":"x","types":\#(types),"variables":{"x":\#(value)}}"#)
        #expect(given?["value"] == JSONValue(parsing: Array(value.utf8)))
    }

    @Test func `a number that is out of range is named with its place`() {
        guard case .string(let error)? = answer(#"{"expr":1e999}"#)?["error"] else { return #expect(Bool(false)) }
        #expect(error.contains("1e999 in line 1, column 9"))
    }

    @Test func `a similar name is suggested, also if nothing was checked`() {
        guard case .string(let error)? = answer(#"{"expr":"sizes('a')"}"#)?["error"] else { return #expect(Bool(false)) }
        #expect(error.contains("sizes()") && error.contains("did you mean size?"))
    }

    @Test func `an empty line has an answer, as every line has`() {
        for line in ["", "  ", "\t\r"] { #expect(answer(line)?["code"] == .string("line")) }
    }
}
