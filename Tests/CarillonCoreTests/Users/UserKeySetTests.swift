import CarillonCore
import CarillonWire
import Crypto
import TestSupport
import Testing
import _CryptoExtras

struct UserKeySetTests {
    private func set(_ keys: [String]) throws -> UserKeySet {
        try UserKeySet(jwks: Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8))
    }

    @Test func `keys for other purposes are left out, and the others are kept`() throws {
        let signer = TokenSigner.es256(P256.Signing.PrivateKey())
        let keys = try set([
            #"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#, #"{"kty":"oct","k":"c2VjcmV0"}"#, "7", "{}",
            try signer.jwk("encryption", #","use":"enc""#), try signer.jwk("wrapping", #","key_ops":["wrapKey"]"#),
            try signer.jwk("other", #","alg":"ES384""#), #"{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}"#,
            try signer.jwk("good", #","use":"sig","alg":"ES256","key_ops":["verify"]"#),
        ])
        #expect(keys.keys.map(\.id) == ["good"])
        #expect(keys.keys.map(\.algorithm) == [.es256])
    }

    @Test func `a set without a key that is of use here is refused, and so is what is no set`() {
        for text in ["", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","k":"AA"}]}"#] {
            #expect(throws: Refusal.self) { try UserKeySet(jwks: Array(text.utf8)) }
        }
    }

    @Test func `a set has 100 keys and 64 KiB at most`() throws {
        let key = try TokenSigner.eddsa(Curve25519.Signing.PrivateKey()).jwk()
        #expect(try set(Array(repeating: key, count: 100)).keys.count == 100)
        #expect(throws: Refusal.self) { try set(Array(repeating: key, count: 101)) }
        let text = "{\"keys\":[\(key)]}"
        let filled = text + String(repeating: " ", count: UserKeySet.longestBytes - text.utf8.count)
        #expect(try UserKeySet(jwks: Array(filled.utf8)).keys.count == 1)
        #expect(throws: Refusal.self) { try UserKeySet(jwks: Array((filled + " ").utf8)) }
    }

    @Test func `an RSA key has 2048 bits or more, and an exponent that is none too large`() throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let jwk = try TokenSigner.rs256(key).jwk()
        #expect(try set([jwk]).keys.count == 1)
        #expect(throws: Refusal.self) { try set([jwk.replacing(#""e":"AQAB""#, with: #""e":"AQAAAAAB""#)]) }
        #expect(throws: Refusal.self) {
            try set([#"{"kty":"RSA","n":"\#(String(repeating: "x", count: 171))","e":"AQAB"}"#])
        }
        #expect(throws: Refusal.self) {
            try set([#"{"kty":"RSA","n":"\#(String(repeating: "x", count: 1370))","e":"AQAB"}"#])
        }
    }
}
