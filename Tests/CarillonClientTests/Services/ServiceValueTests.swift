import CarillonBasics
import Foundation
import Testing

@testable import CarillonClient

/// The values of services: how deep they may be, how they travel, and how the app's own types become them.
struct ServiceValueTests {
    @Test func `a value is decoded to the encoded value`() throws {
        let values: [ServiceValue] = [
            nil, true, false, 0, .integer(.max), .integer(.min), 1.5, .number(2), .number(-0.0),
            .number(.leastNonzeroMagnitude),
            .number(.greatestFiniteMagnitude), "", "\u{0}\"\\", .bytes(Data()), .bytes(Data([0, 255])), [], [1, "a", nil],
            [:], ["a": 1, "b": [1, 2], "number": "1", "bytes": "x", "object": [nil]],
        ]
        for value in values {
            let text = value.json.bytes
            let json = try #require(JSONValue(parsing: text))
            #expect(ServiceValue(json: json) == value, "\(value)")
        }
    }

    @Test func `a value that is too deep or not a number is refused`() {
        let valid: [ServiceValue] = [[1], ["a": [1]], ["a": nil]]
        let invalid: [ServiceValue] = [
            [[1]], [["a": 1]], ["a": ["b": 1]], ["a": [[1]]], .number(.nan), .number(.infinity), [.number(.nan)],
            ["a": [.number(-.infinity)]],
        ]
        for value in valid { #expect(value.isValid, "\(value)") }
        for value in invalid { #expect(!value.isValid, "\(value)") }
    }

    @Test(arguments: [
        "1.5", #"{"number":"nan"}"#, #"{"number":"inf"}"#, #"{"number":1}"#, #"{"bytes":"*"}"#, #"{"bytes":"AA","x":1}"#,
        #"{"a":1}"#, "{}", #"{"object":{"a":1,"a":2}}"#, #"{"object":[1]}"#, "[[1]]", #"{"object":{"a":{"object":{}}}}"#,
        #"{"object":{"a":[[1]]}}"#, "18446744073709551616",
    ])
    func `a text that is not a valid sealed value is not opened`(_ text: String) throws {
        let json = try #require(JSONValue(parsing: Array(text.utf8)))
        #expect(ServiceValue(json: json) == nil)
    }

    @Test func `a value of a wrong type is reported with the member, without the texts of the decoder`() throws {
        struct Box: Codable { var size: Int; var names: [String] }
        let cases: [(ServiceValue, String)] = [
            (["names": []], "the member \"size\" is missing"),
            (["size": "1", "names": []], "the member \"size\" is not of the type Int"),
            (["size": 1, "names": ["a", 2]], "the member \"names.1\" is not of the type String"),
            ("x", "it is not of the type"), (["size": nil, "names": []], "the member \"size\" is null"),
        ]
        for (value, text) in cases {
            let error = #expect(throws: ServiceError.self) { try value.decode(Box.self) }
            #expect(error?.text.hasPrefix("The value is no Box: " + text) == true, "\(error?.text ?? "")")
            #expect(error?.text.contains("Context") == false)
        }
        let endless = #expect(throws: ServiceError.self) { try ServiceValue(encoding: ["a": Double.infinity]) }
        #expect(endless?.text.hasPrefix("The value cannot be encoded: ") == true)
        #expect(endless?.text.hasSuffix("has a value that JSON does not have.") == true, "\(endless?.text ?? "")")
    }

    private struct Mail: Codable, Equatable {
        var to: [String]
        var size: Int64
        var weight: Double
        var body: Data
        var draft: Bool?
    }

    @Test func `types of the app become values and come back`() throws {
        let mail = Mail(to: ["a", "b"], size: .max, weight: 1, body: Data([1, 2, 3]))
        let value = try ServiceValue(encoding: mail)
        #expect(
            value == ["to": ["a", "b"], "size": .integer(.max), "weight": 1, "body": .bytes(Data([1, 2, 3]))])
        #expect(try value.decode(Mail.self) == mail)
        #expect(try ServiceValue(encoding: 5).decode(Int.self) == 5)
        #expect(try ServiceValue(encoding: "x") == "x")
        #expect(try ServiceValue(encoding: Data([9])) == .bytes(Data([9])))
        #expect(throws: ServiceError.self) { try ServiceValue(encoding: [[1]]) }
        #expect(throws: ServiceError.self) { try ServiceValue.string("x").decode(Int.self) }
        #expect(throws: ServiceError.self) { try ServiceValue.object(["to": 1]).decode(Mail.self) }
    }
}
