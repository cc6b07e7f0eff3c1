import CarillonBasics
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
            #"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#, #"{"kty":"OKP","crv":"X25519","x":"AA"}"#, "7", "{}",
            try signer.jwk("encryption", #","use":"enc""#), try signer.jwk("wrapping", #","key_ops":["wrapKey"]"#),
            try signer.jwk("other", #","alg":"ES384""#), #"{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}"#,
            try signer.jwk("good", #","use":"sig","alg":"ES256","key_ops":["verify"]"#),
        ])
        #expect(keys.keys.map(\.id) == ["good"])
        #expect(keys.keys.map(\.algorithm) == [.es256])
    }

    @Test func `a set without a usable key is refused, and so is a text that is not a set`() {
        for text in ["", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","k":"AA"}]}"#] {
            #expect(throws: Refusal.self) { try UserKeySet(jwks: Array(text.utf8)) }
        }
        let refusal = #expect(throws: Refusal.self) { try UserKeySet(jwks: Array(#"{"keys":[1e999]}"#.utf8)) }
        #expect(refusal?.detail.contains("line 1, column 10 is out of range") == true)
    }

    /// The eight points of small order, and encodings of them and of others that are not canonical: a value of y that is the prime
    /// or more, and x = 0 with a sign bit.
    private static let weakPoints = [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ]

    @Test(arguments: weakPoints)
    func `an Ed25519 key of small order, or that is not canonical, is refused`(point: String) throws {
        let bytes = try #require(Hexadecimal.decode(point))
        #expect(!Ed25519Encoding.isAcceptable(bytes))
        let weak = #"{"kty":"OKP","crv":"Ed25519","kid":"weak","x":"\#(Base64URL.encode(bytes))"}"#
        #expect(throws: Refusal.self) { try set([weak]) }
        let good = try TokenSigner.eddsa(Curve25519.Signing.PrivateKey()).jwk("good")
        #expect(try set([weak, good]).keys.map(\.id) == ["good"])
    }

    @Test func `Ed25519 keys of large order are accepted`() throws {
        for _ in 0..<200 {
            #expect(Ed25519Encoding.isAcceptable(Array(Curve25519.Signing.PrivateKey().publicKey.rawRepresentation)))
        }
        #expect(!Ed25519Encoding.isAcceptable([UInt8](repeating: 2, count: 31)))
        // The largest values of y below the prime that are on no point of small order.
        #expect(Ed25519Encoding.isAcceptable([0xEB] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]))
        #expect(Ed25519Encoding.isAcceptable([0xED] + [UInt8](repeating: 0xFF, count: 30) + [0x7E]))
    }

    @Test func `members of a key are canonical base64url`() throws {
        let keys: [(String, [String])] = [
            (try TokenSigner.es256(P256.Signing.PrivateKey()).jwk(), ["x", "y"]),
            (try TokenSigner.eddsa(Curve25519.Signing.PrivateKey()).jwk(), ["x"]),
            (try TokenSigner.rs256(_RSA.Signing.PrivateKey(keySize: .bits2048)).jwk(), ["n"]),
        ]
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        for (jwk, members) in keys {
            #expect(try set([jwk]).keys.count == 1)
            for member in members {
                guard case .string(let text)? = JSONValue(parsing: Array(jwk.utf8))?[member] else {
                    Issue.record("\(member) is missing")
                    continue
                }
                let last = try #require(text.last)
                let place = try #require(alphabet.firstIndex(of: last))
                for other in ["\(text)=", "\(text)==", "\(text) ", " \(text)", "\(text.dropLast())\(alphabet[place + 1])"] {
                    #expect(throws: Refusal.self) { try set([jwk.replacing(text, with: other)]) }
                }
            }
        }
        let rsa = keys[2].0
        for e in ["AQAB=", "AQAB====", "AQ AB", "AQAB\\n"] {
            #expect(throws: Refusal.self) { try set([rsa.replacing("AQAB", with: e)]) }
        }
    }

    @Test(arguments: ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
    func `a set with a private key is refused as a whole`(member: String) throws {
        let signer = TokenSigner.es256(P256.Signing.PrivateKey())
        let good = try signer.jwk("good")
        for value in ["\"geheim\"", "null", "7", "[]"] {
            let key = try signer.jwk("bad", ",\"\(member)\":\(value)")
            let other = #"{"kty":"other","\#(member)":\#(value)}"#
            let texts = [
                "{\"keys\":[\(good),\(key)]}", "{\"keys\":[\(other),\(good)]}",
                "{\"keys\":[\(good)],\"\(member)\":\(value)}",
            ]
            for text in texts {
                let refusal = #expect(throws: Refusal.self) { try UserKeySet(jwks: Array(text.utf8)) }
                #expect(refusal?.detail == "The key set contains a private key; publish only the public keys.")
                #expect(refusal?.code == .userRulesInvalid)
            }
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
