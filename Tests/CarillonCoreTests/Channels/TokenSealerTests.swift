import CarillonBasics
import CarillonCore
import CarillonWire
import Testing

struct TokenSealerTests {
    private func key(_ id: UInt8) -> TokenKey { TokenKey(id: id, bytes: Sample.random.bytes(32)) }

    @Test func `a token opens to the sealed value`() throws {
        let sealer = TokenSealer(keys: [key(1)], random: Sample.random)
        let contents = TokenSealer.Contents(device: DeviceSerial(3), channel: ChannelSerial(.max))
        let token = try sealer.seal(contents)
        #expect(token.utf8.count == TokenSealer.tokenCharacters)
        #expect(sealer.open(token) == contents)
    }

    @Test func `two tokens of one channel have nothing visible in common`() throws {
        let sealer = TokenSealer(keys: [key(1)], random: Sample.random)
        let contents = TokenSealer.Contents(device: DeviceSerial(3), channel: ChannelSerial(4))
        let tokens = try (0..<50).map { _ in Array(try sealer.seal(contents).utf8) }
        for place in 0..<TokenSealer.tokenCharacters {
            #expect(Set(tokens.map { $0[place] }).count > 5, "the character at \(place) hardly changes")
        }
    }

    @Test func `a token with any one bit changed does not open`() throws {
        let sealer = TokenSealer(keys: [key(1)], random: Sample.random)
        let token = try sealer.seal(.init(device: DeviceSerial(3), channel: ChannelSerial(4)))
        let bytes = try #require(Base64URL.decode(token))
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(sealer.open(Base64URL.encode(changed)) == nil)
        }
    }

    @Test(arguments: [
        "", "x", String(repeating: "A", count: 60), String(repeating: "é", count: 30), String(repeating: "=", count: 60),
    ])
    func `garbage does not open`(text: String) {
        #expect(TokenSealer(keys: [key(1)], random: Sample.random).open(text) == nil)
    }

    @Test func `a retired key opens its own tokens, and a foreign key does not`() throws {
        let (old, new) = (key(1), key(2))
        let contents = TokenSealer.Contents(device: DeviceSerial(1), channel: ChannelSerial(2))
        let token = try TokenSealer(keys: [old], random: Sample.random).seal(contents)
        #expect(TokenSealer(keys: [new, old], random: Sample.random).open(token) == contents)
        #expect(TokenSealer(keys: [new], random: Sample.random).open(token) == nil)
        #expect(TokenSealer(keys: [key(1)], random: Sample.random).open(token) == nil)
    }
}
