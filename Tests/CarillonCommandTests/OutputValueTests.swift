import CarillonBasics
import Testing

@testable import CarillonCommand

/// The JSON that commands print.
struct OutputValueTests {
    @Test func `members are sorted, and every value has its form`() {
        let value = OutputValue.object([
            "b": "a/\"\u{1}é", "a": .number(.max), "list": .list([.flag(true), .object([:]), -1]),
        ])
        #expect(
            String(decoding: value.json.bytes, as: UTF8.self)
                == #"{"a":9223372036854775807,"b":"a/\"\u0001é","list":[true,{},-1]}"#)
    }
}
