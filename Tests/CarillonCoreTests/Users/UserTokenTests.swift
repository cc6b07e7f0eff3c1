import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import TestSupport
import Testing
import _CryptoExtras

struct UserTokenTests {
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)
    private static let secret = String(repeating: "s", count: 32)
    private static let good = #"{"sub":"ada","aud":"com.example.app","exp":1800000060}"#

    private static func signers() throws -> [TokenSigner] {
        [
            .es256(P256.Signing.PrivateKey()), .rs256(try _RSA.Signing.PrivateKey(keySize: .bits2048)),
            .eddsa(Curve25519.Signing.PrivateKey()), .hs256(secret),
        ]
    }

    private static func keys(_ signer: TokenSigner, _ id: String? = nil) throws -> UserKeySet {
        if case .hs256(let secret) = signer { return UserKeySet([UserKey(secret: Array(secret.utf8))]) }
        return try UserKeySet(jwks: Array("{\"keys\":[\(try signer.jwk(id))]}".utf8))
    }

    private static func user(
        _ token: String, _ keys: UserKeySet, _ allowed: [UserAlgorithm] = UserAlgorithm.allCases, issuer: String? = nil,
        at now: Timestamp = now
    ) throws -> String {
        try UserToken(token, allowed: allowed)
            .verify(with: keys, audience: "com.example.app", issuer: issuer, at: now).text
    }

    private func refuses(_ token: String, _ keys: UserKeySet, _ allowed: [UserAlgorithm] = UserAlgorithm.allCases) -> Bool {
        do {
            _ = try Self.user(token, keys, allowed)
            return false
        } catch let refusal as Refusal {
            return refusal.code == .userTokenInvalid
        } catch {
            return false
        }
    }

    @Test func `each algorithm identifies the user, with the key that signed and no other`() throws {
        let signers = try Self.signers()
        let others = try Self.signers()
        for (signer, other) in zip(signers, others) {
            let token = try signer.token(Self.good)
            #expect(try Self.user(token, Self.keys(signer)) == "ada")
            if case .hs256 = signer { continue }
            #expect(refuses(token, try Self.keys(other)))
        }
        let forged = try TokenSigner.hs256(String(repeating: "t", count: 32)).token(Self.good)
        #expect(refuses(forged, try Self.keys(.hs256(Self.secret))))
    }

    @Test func `the algorithm is the configured one, whatever the token contains`() throws {
        let signer = TokenSigner.es256(P256.Signing.PrivateKey())
        let keys = try Self.keys(signer)
        #expect(refuses(try signer.token(Self.good), keys, [.rs256, .eddsa]))
        for name in ["none", "None", "ES384", "HS256", "es256"] {
            #expect(refuses(try signer.token(Self.good, header: ["alg": "\"\(name)\""]), keys, UserAlgorithm.published))
        }
        #expect(refuses(try signer.token(Self.good, header: ["alg": "7"]), keys))
        // Signed with the published key as if it were a secret.
        let published = try signer.jwk()
        #expect(refuses(try TokenSigner.hs256(published).token(Self.good), keys))
        let parts = try signer.token(Self.good).split(separator: ".")
        #expect(refuses("\(Base64URL.encode(Array(#"{"alg":"none"}"#.utf8))).\(parts[1]).", keys))
    }

    @Test func `each part of a token is canonical base64url`() throws {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        for signer in try Self.signers() {
            let keys = try Self.keys(signer)
            // The spaces add unused bits to each of the first two parts, for any length.
            for spaces in 0..<3 {
                let claims = Self.good + String(repeating: " ", count: spaces)
                let header = ["typ": "\"\(String(repeating: "t", count: spaces))\""]
                let token = try signer.token(claims, header: header)
                #expect(try Self.user(token, keys) == "ada")
                let parts = token.split(separator: ".").map(String.init)
                for part in 0..<3 {
                    var others = ["\(parts[part])=", "\(parts[part])==", "\(parts[part]) "]
                    let last = try #require(parts[part].last)
                    let place = try #require(alphabet.firstIndex(of: last))
                    if parts[part].utf8.count % 4 != 0 { others.append("\(parts[part].dropLast())\(alphabet[place + 1])") }
                    for other in others {
                        var changed = parts
                        changed[part] = other
                        #expect(refuses(changed.joined(separator: "."), keys))
                        #expect(throws: Refusal.self) {
                            try UserToken(changed.joined(separator: "."), allowed: UserAlgorithm.allCases)
                        }
                    }
                }
            }
        }
    }

    @Test func `a token that anybody can make for a key of small order is refused`() throws {
        // Of the point of order 1: R = 1 and s = 0 is valid for every message.
        let x = Base64URL.encode([1] + [UInt8](repeating: 0, count: 31))
        let good = try TokenSigner.eddsa(Curve25519.Signing.PrivateKey()).jwk()
        let set = #"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"\#(x)"},\#(good)]}"#
        let keys = try UserKeySet(jwks: Array(set.utf8))
        let parts = try TokenSigner.eddsa(Curve25519.Signing.PrivateKey()).token(Self.good).split(separator: ".")
        let signature = Base64URL.encode([1] + [UInt8](repeating: 0, count: 63))
        #expect(refuses("\(parts[0]).\(parts[1]).\(signature)", keys))
    }

    @Test func `a key in the token itself is ignored`() throws {
        let thief = TokenSigner.es256(P256.Signing.PrivateKey())
        let keys = try Self.keys(.es256(P256.Signing.PrivateKey()))
        let header = ["jwk": try thief.jwk(), "jku": "\"https://thief.example/keys\"", "x5u": "\"https://thief.example/\""]
        #expect(refuses(try thief.token(Self.good, header: header), keys))
        let signer = TokenSigner.es256(P256.Signing.PrivateKey())
        #expect(try Self.user(signer.token(Self.good, header: header), Self.keys(signer)) == "ada")
        #expect(refuses(try signer.token(Self.good, header: ["crit": "[\"exp\"]"]), try Self.keys(signer)))
    }

    @Test(arguments: [
        #"{"aud":"com.example.app","exp":1800000060}"#,
        #"{"sub":"","aud":"com.example.app","exp":1800000060}"#,
        #"{"sub":7,"aud":"com.example.app","exp":1800000060}"#,
        #"{"sub":"a\u0000b","aud":"com.example.app","exp":1800000060}"#,
        #"{"sub":"ada","exp":1800000060}"#,
        #"{"sub":"ada","aud":"com.example.other","exp":1800000060}"#,
        #"{"sub":"ada","aud":["com.example.other"],"exp":1800000060}"#,
        #"{"sub":"ada","aud":["com.example.other","com.example.third"],"exp":1800000060}"#,
        #"{"sub":"ada","aud":[],"exp":1800000060}"#,
        #"{"sub":"ada","aud":"com.example.app"}"#,
        #"{"sub":"ada","aud":"com.example.app","exp":"1800000060"}"#,
        #"{"sub":"ada","aud":"com.example.app","exp":1799999970}"#,
        #"{"sub":"ada","aud":"com.example.app","exp":1800000060,"nbf":1800000031}"#,
        #"{"sub":"ada","aud":"com.example.app","exp":1800000060,"nbf":"soon"}"#,
        #"["sub"]"#,
    ])
    func `a token without user, audience or expiry is refused`(claims: String) throws {
        let signer = TokenSigner.hs256(Self.secret)
        #expect(refuses(try signer.token(claims), try Self.keys(signer)))
    }

    @Test(arguments: [
        #"{"sub":"ada","aud":["com.example.other","com.example.app"],"exp":1800000060}"#,
        #"{"sub":"ada","aud":"com.example.app","exp":1799999970.5}"#,
        #"{"sub":"ada","aud":"com.example.app","exp":1800000060,"nbf":1800000030}"#,
    ])
    func `clocks may differ by half a minute, and an audience may be one of several`(claims: String) throws {
        let signer = TokenSigner.hs256(Self.secret)
        #expect(try Self.user(signer.token(claims), Self.keys(signer)) == "ada")
    }

    @Test func `the issuer counts where one is wanted`() throws {
        let signer = TokenSigner.hs256(Self.secret)
        let keys = try Self.keys(signer)
        let named = #"{"iss":"https://id.example","sub":"ada","aud":"com.example.app","exp":1800000060}"#
        #expect(try Self.user(signer.token(named), keys, issuer: "https://id.example") == "ada")
        #expect(throws: Refusal.self) { try Self.user(signer.token(named), keys, issuer: "https://other.example") }
        #expect(throws: Refusal.self) { try Self.user(signer.token(Self.good), keys, issuer: "https://id.example") }
    }

    @Test func `a text that is not a JWT is refused, and one longer than 8 KiB is not read`() throws {
        let signer = TokenSigner.hs256(Self.secret)
        let keys = try Self.keys(signer)
        let token = try signer.token(Self.good)
        for text in ["", "a", "a.b", "..", token + ".", token.dropLast(2) + "!!", "\(token.dropLast(4))AAAA"] {
            #expect(refuses(text, keys), "\(text)")
        }
        func padded(_ count: Int) throws -> String {
            let filling = String(repeating: "x", count: count)
            return try signer.token(#"{"sub":"ada","aud":"com.example.app","exp":1800000060,"x":"\#(filling)"}"#)
        }
        var count = 6000
        while try padded(count + 1).utf8.count <= UserToken.longestBytes { count += 1 }
        #expect(try Self.user(padded(count), keys) == "ada")
        #expect(refuses(try padded(count + 1), keys))
    }

    @Test func `a key is found by its name, and a token without one is tried with ten`() throws {
        let signers = (0..<12).map { _ in TokenSigner.es256(P256.Signing.PrivateKey()) }
        let all = try signers.enumerated().map { try $1.jwk("k\($0)") }.joined(separator: ",")
        let keys = try UserKeySet(jwks: Array("{\"keys\":[\(all)]}".utf8))
        #expect(try Self.user(signers[11].token(Self.good, header: ["kid": "\"k11\""]), keys) == "ada")
        #expect(refuses(try signers[11].token(Self.good, header: ["kid": "\"k10\""]), keys))
        #expect(refuses(try signers[11].token(Self.good, header: ["kid": "\"k12\""]), keys))
        #expect(refuses(try signers[0].token(Self.good, header: ["kid": "7"]), keys))
        #expect(try Self.user(signers[9].token(Self.good), keys) == "ada")
        #expect(refuses(try signers[10].token(Self.good), keys))
    }
}
