import CarillonCore
import Testing

struct SecretSealerTests {
    private let first = TokenKey(id: 1, bytes: Array(repeating: 1, count: 32))
    private let second = TokenKey(id: 2, bytes: Array(repeating: 2, count: 32))
    private let channel = ChannelSerial(7)
    private let secret = Array("a secret of a backend".utf8)

    @Test func `a sealed secret is opened by every key that still exists`() throws {
        let sealed = try SecretSealer(keys: [first], for: .watch, random: Sample.random).seal(secret, for: channel.rawValue)
        #expect(
            SecretSealer(keys: [second, first], for: .watch, random: Sample.random).open(sealed, for: channel.rawValue)
                == secret)
        #expect(SecretSealer(keys: [second], for: .watch, random: Sample.random).open(sealed, for: channel.rawValue) == nil)
    }

    @Test func `the sealed form does not reveal the secret, and is always different`() throws {
        let sealer = SecretSealer(keys: [first], for: .watch, random: Sample.random)
        let sealed = try (0..<2).map { _ in try sealer.seal(secret, for: channel.rawValue) }
        #expect(sealed[0] != sealed[1])
        #expect(!sealed[0].contains(secret.prefix(4)))
    }

    @Test func `another channel's, or one with any byte changed, is not read`() throws {
        let sealer = SecretSealer(keys: [first], for: .watch, random: Sample.random)
        let sealed = try sealer.seal(secret, for: channel.rawValue)
        #expect(sealer.open(sealed, for: 8) == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(sealer.open(changed, for: channel.rawValue) == nil)
        }
        #expect(sealer.open([], for: channel.rawValue) == nil)
        #expect(sealer.open([1, 2, 3], for: channel.rawValue) == nil)
    }
}
