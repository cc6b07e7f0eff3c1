import CarillonWire
import Testing

struct IdentifierTests {
    @Test func `a message identifier is read back, and has no part in common with its neighbour`() throws {
        var generator = SystemRandomNumberGenerator()
        let first = MessageID(position: 7, secret: .random(using: &generator))
        let second = MessageID(position: 8, secret: .random(using: &generator))
        #expect(MessageID(first.description) == first)
        #expect(first.description.utf8.count == 32)
        #expect(first.description.prefix(4) != second.description.prefix(4))
    }

    @Test(arguments: [
        "", "x", String(repeating: "A", count: 31), String(repeating: "A", count: 33), String(repeating: "*", count: 32),
    ])
    func `a malformed message identifier is none`(text: String) {
        #expect(MessageID(text) == nil)
    }

    @Test func `a channel identifier is a UUID with dashes`() throws {
        let id = try #require(ChannelID("C1E60F9B-28e2-417b-9997-234ebc94f72b"))
        #expect(id.description == "c1e60f9b-28e2-417b-9997-234ebc94f72b")
        #expect(ChannelID("c1e60f9b28e2417b9997234ebc94f72b") == nil)
        #expect(ChannelID("c1e60f9b-28e2-417b-9997-234ebc94f72") == nil)
        #expect(ChannelID("g1e60f9b-28e2-417b-9997-234ebc94f72b") == nil)
        #expect(ChannelID("c1e60f9b-28e2-417b-9997-234ebc94f72b0") == nil)
        #expect(ChannelID("c1e60f9b-28e2-417b-9997-234ebc94f72-") == nil)
        #expect(ChannelID("c1e60f9-b28e2-417b-9997-234ebc94f72b") == nil)
        for place in [8, 13, 18, 23] {
            var text = Array("c1e60f9b-28e2-417b-9997-234ebc94f72b".utf8)
            text[place] = UInt8(ascii: "0")
            #expect(ChannelID(String(decoding: text, as: UTF8.self)) == nil)
        }
        #expect(ChannelID("") == nil)
    }

    @Test func `random channel identifiers are of version 4`() {
        var generator = SystemRandomNumberGenerator()
        let text = Array(ChannelID.random(using: &generator).description)
        #expect(text[14] == "4")
        #expect("89ab".contains(text[19]))
    }

    @Test(arguments: [
        ("com.example.app", true), ("a", true), ("", false), (".a", false), ("a.", false), ("a b", false), ("a/b", false),
        (String(repeating: "a", count: 129), false),
    ])
    func `apps are named like bundle identifiers`(text: String, isValid: Bool) {
        #expect((AppID(text) != nil) == isValid)
    }
}
