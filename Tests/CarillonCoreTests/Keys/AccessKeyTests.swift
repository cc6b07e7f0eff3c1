import CarillonCore
import CarillonWire
import Testing

struct AccessKeyTests {
    private let now = Sample.now

    private func key(_ secret: String, earlier: AccessKey.EarlierSecret? = nil, revokedAt: Timestamp? = nil) -> AccessKey {
        AccessKey(
            id: KeyID(1), role: .admin, app: nil, name: nil, secretHash: SecretHash(of: secret.utf8), earlier: earlier,
            createdAt: now, revokedAt: revokedAt)
    }

    @Test func `a key opens with its secret, and not with another`() {
        #expect(key("a").accepts(SecretHash(of: "a".utf8), at: now, served: 0))
        #expect(!key("a").accepts(SecretHash(of: "b".utf8), at: now, served: 0))
    }

    @Test(arguments: 0..<32) func `every byte of a hash counts`(place: Int) {
        let hash = SecretHash(of: "a".utf8)
        var bytes = hash.bytes
        bytes[place] ^= 1
        #expect(!hash.matches(SecretHash(stored: bytes)) && !SecretHash(stored: bytes).matches(hash))
        #expect(hash.matches(SecretHash(stored: hash.bytes)))
        #expect(!hash.matches(SecretHash(stored: Array(hash.bytes.prefix(place)))))
    }

    @Test func `after rotation, the earlier secret works for its remaining time`() {
        let earlier = AccessKey.EarlierSecret(
            hash: SecretHash(of: "old".utf8), validUntil: now.adding(seconds: 5), servedUntil: 105)
        let key = key("new", earlier: earlier)
        #expect(key.accepts(SecretHash(of: "old".utf8), at: now.adding(seconds: 4), served: 104))
        #expect(!key.accepts(SecretHash(of: "old".utf8), at: now.adding(seconds: 5), served: 105))
        #expect(key.accepts(SecretHash(of: "old".utf8), at: now.adding(seconds: 500), served: 104), "the server was stopped")
        #expect(key.accepts(SecretHash(of: "old".utf8), at: now.adding(seconds: -500), served: 105))
        #expect(key.accepts(SecretHash(of: "new".utf8), at: now.adding(seconds: 5), served: 105))
    }

    @Test func `a revoked key opens with nothing`() {
        #expect(!key("a", revokedAt: now).accepts(SecretHash(of: "a".utf8), at: now, served: 0))
    }

    @Test func `a secret is written with its role and its public name, and read back`() throws {
        let secret = KeySecret(role: .client, id: KeyID(0xAB), random: Sample.random)
        #expect(secret.text.hasPrefix("car_client_00000000000000ab_"))
        #expect(try #require(KeySecret(parsing: secret.text)).id == KeyID(0xAB))
    }

    @Test(arguments: ["", "car", "car_client_xx_yy", "car_nobody_00000000000000ab_" + String(repeating: "a", count: 48)])
    func `a malformed secret is none`(text: String) {
        #expect(KeySecret(parsing: text) == nil)
    }
}
