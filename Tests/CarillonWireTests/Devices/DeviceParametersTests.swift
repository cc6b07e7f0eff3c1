import CarillonBasics
import CarillonWire
import Testing

/// The limits of an app's description of its install.
struct DeviceParametersTests {
    private static func object(_ members: [(String, JSONValue)]) -> JSONValue {
        .object(members.map { JSONValue.Member(name: $0.0, value: $0.1) })
    }

    private static func text(_ bytes: Int) -> JSONValue { .string(String(repeating: "x", count: bytes)) }

    private static func fits(_ members: [(String, JSONValue)]) -> Bool { (try? DeviceParameters(object(members))) != nil }

    @Test func `the number of parameters is limited`() {
        #expect(Self.fits((1...64).map { ("n\($0)", .integer($0)) }))
        #expect(!Self.fits((1...65).map { ("n\($0)", .integer($0)) }))
    }

    @Test func `a name is one that a condition can use`() {
        #expect(Self.fits([(String(repeating: "n", count: 64), .null), ("_a9", .bool(true)), ("A", .bool(true))]))
        for name in ["", "9a", "a-b", "a.b", "ä", " a", String(repeating: "n", count: 65)] {
            #expect(!Self.fits([(name, .bool(true))]), "\(name)")
        }
    }

    @Test func `a text has a limit in bytes, and all texts together have one`() {
        #expect(Self.fits([("a", Self.text(1024))]))
        #expect(!Self.fits([("a", Self.text(1025))]))
        #expect(Self.fits([("a", .array(Array(repeating: Self.text(1), count: 64)))]))
        #expect(!Self.fits([("a", .array(Array(repeating: Self.text(1), count: 65)))]))
        #expect(!Self.fits([("a", .array([Self.text(1025)]))]))
        // Seven of 1,032 bytes with name and punctuation, and the braces.
        let seven = (1...7).map { ("a\($0)", Self.text(1024)) }
        let rest = 8192 - 2 - 7 * 1032 - "\"b\":\"\"".utf8.count
        #expect(Self.fits(seven + [("b", Self.text(rest))]))
        #expect(!Self.fits(seven + [("b", Self.text(rest + 1))]))
    }

    @Test func `equal parameters are written alike`() throws {
        let one = try DeviceParameters(Self.object([("b", .integer(1)), ("a", .number(0.5))]))
        let other = try DeviceParameters(Self.object([("a", .number(0.5)), ("b", .integer(1))]))
        #expect(String(decoding: one.json, as: UTF8.self) == #"{"a":0.5,"b":1}"#)
        #expect(one.json == other.json)
        let read = try DeviceParameters(try #require(JSONValue(parsing: one.json)))
        #expect(read == one)
    }
}

/// The vendor's name for a device.
struct PushTokenTests {
    @Test func `digits of either case, in pairs`() throws {
        #expect(try PushToken(hexadecimal: "00FFab").hexadecimal == "00ffab")
        #expect(try PushToken(hexadecimal: String(repeating: "a", count: 1024)).bytes.count == 512)
        for text in ["", "a", "abc", "g0", " ab", "ab cd", "<ab>", String(repeating: "a", count: 1026)] {
            #expect(throws: Refusal.self) { try PushToken(hexadecimal: text) }
        }
    }

    @Test func `the description of a token does not reveal it`() throws {
        let token = try PushToken(hexadecimal: "c0ffee")
        #expect(!"\(token)".contains("c0ffee"))
    }
}
