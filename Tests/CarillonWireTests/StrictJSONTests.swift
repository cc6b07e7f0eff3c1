import CarillonWire
import Foundation
import Testing

struct StrictJSONTests {
    private func fault<Body: StrictBody>(_ type: Body.Type, _ text: String) -> Refusal? {
        do {
            _ = try StrictJSON.decode(type, from: Data(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        ("{}", ErrorCode.fieldMissing, "id"),
        (#"{"id":7}"#, .fieldInvalid, "id"),
        (#"{"id":null}"#, .fieldInvalid, "id"),
        (#"{"id":"a","idd":1}"#, .fieldUnknown, "idd"),
        (#"{"id":1e999}"#, .fieldInvalid, "\"id\" has a number that is out of range"),
        (#"{"id":{"a":[0,1e999]}}"#, .fieldInvalid, "\"id.a.1\""), ("1e999", .jsonInvalid, "JSON"),
        (#"{"id":"a",}"#, .jsonInvalid, "comma"), ("{", .jsonInvalid, "JSON"), ("", .jsonInvalid, "JSON"),
        ("[]", .jsonInvalid, "JSON"),
        ("\"x\"", .jsonInvalid, "JSON"),
    ])
    func `a body is refused with its fault and the place`(text: String, code: ErrorCode, word: String) throws {
        let refusal = try #require(fault(CreateApp.self, text))
        #expect(refusal.code == code)
        #expect(refusal.detail.contains(word))
    }

    @Test func `a number that is out of range is named in an object that is read as it is, too`() {
        let refusal = #expect(throws: Refusal.self) {
            try StrictJSON.object(Array(#"{"payload":{"a":-1e400}}"#.utf8), known: ["payload"])
        }
        #expect(refusal?.code == .fieldInvalid && refusal?.detail.contains("\"payload.a\"") == true)
    }

    @Test func `the place inside a list is named`() throws {
        let refusal = try #require(
            fault(InboxResults.self, #"{"results":[{"version":"a","result":"b"},{"version":3,"result":"b"}]}"#))
        #expect(refusal.code == .fieldInvalid)
        #expect(refusal.detail.contains("results"))
        #expect(refusal.detail.contains("version"))
    }

    @Test func `a good body is read`() throws {
        #expect(
            try StrictJSON.decode(RegisterChannel.self, from: Data(#"{"channelID":"c","name":null}"#.utf8)).channelID == "c")
    }

    @Test(arguments: [
        ("-0.0", 0), ("301.0", 301), ("3e2", 300), ("30100E-2", 301), ("9007199254740993.0", 9_007_199_254_740_993),
        ("9223372036854775807.0", Int.max),
    ])
    func `a number whose value is an integer is that integer, as in a frame`(text: String, number: Int) throws {
        let results = #"{"results":[{"version":"v","result":"failed","code":\#(text)}]}"#
        #expect(try StrictJSON.decode(InboxResults.self, from: Data(results.utf8)).results.map(\.code) == [number])
        let watch = #"{"pingAddress":"https://a.example/","pingIntervalSeconds":\#(text)}"#
        #expect(try StrictJSON.decode(PutWatch.self, from: Data(watch.utf8)).pingIntervalSeconds == number)
    }

    @Test(arguments: [
        "0.5", "301.5", "9223372036854775808", "301.00000000000000001", "9007199254740993.5", "1e-400", "-1e-400", "1e300",
    ])
    func `a number whose value is not an integer is refused, as in a frame`(text: String) throws {
        let results = #"{"results":[{"version":"v","result":"failed","code":\#(text)}]}"#
        let refusal = try #require(fault(InboxResults.self, results))
        #expect(refusal.code == .fieldInvalid)
        #expect(refusal.detail.contains("code\" must be a whole number"))
        #expect(fault(PutWatch.self, #"{"renewSecret":\#(text)}"#)?.code == .fieldInvalid)
        #expect(fault(RegisterChannel.self, #"{"channelID":\#(text)}"#)?.code == .fieldInvalid)
    }

    @Test(arguments: ErrorCode.allCases)
    func `every entry of the catalogue has a status of its class and a title`(code: ErrorCode) {
        #expect((400..<600).contains(code.status))
        #expect(!code.title.isEmpty)
        #expect(!(code.isRetryable && [400, 401, 403, 404, 410, 413].contains(code.status)))
    }
}
