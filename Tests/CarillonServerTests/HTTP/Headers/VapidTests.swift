import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import Foundation
import Testing

@testable import CarillonServer

struct VapidTests {
    private let key = P256.Signing.PrivateKey()
    private let addresses = PublicURLs("https://push.example.net", former: ["https://old.example.net:8443/push-server"])
    private let now = Timestamp(milliseconds: 1_700_000_000_000)

    private func token(
        _ claims: String, header: String = #"{"typ":"JWT","alg":"ES256"}"#, by signer: P256.Signing.PrivateKey? = nil
    ) throws -> String {
        let signed = Base64URL.encode(header.utf8) + "." + Base64URL.encode(claims.utf8)
        let signature = try (signer ?? key).signature(for: Data(signed.utf8)).rawRepresentation
        return signed + "." + Base64URL.encode(signature)
    }

    private func claims(aud: String = #""https://push.example.net""#, after seconds: Int64 = 3600) -> String {
        #"{"aud":\#(aud),"exp":\#(now.seconds + seconds)}"#
    }

    private var publicKey: String { Base64URL.encode(key.publicKey.x963Representation) }

    private func verify(_ authorization: String, cryptoKey: String? = nil) throws {
        let credentials = try #require(try VapidCredentials(authorization: authorization, cryptoKey: cryptoKey))
        try VerifiedVapidTokens(addresses: addresses).verify(credentials, at: now)
    }

    @Test(arguments: [
        "vapid t=%t, k=%k", "vapid t=%t,k=%k", "vapid k=%k, t=%t", "VAPID t=%t;k=%k", "Vapid t=\"%t\", k=\"%k\", x=1",
    ])
    func `the header is understood in every spelling`(format: String) throws {
        let text = format.replacingOccurrences(of: "%t", with: try token(claims()))
            .replacingOccurrences(of: "%k", with: publicKey)
        try verify(text)
    }

    @Test(arguments: ["WebPush", "webpush", "Bearer"])
    func `the older generation is understood`(scheme: String) throws {
        try verify("\(scheme) \(try token(claims()))", cryptoKey: "dh=AAAA;p256ecdsa=\(publicKey)")
        try verify("\(scheme) \(try token(claims()))", cryptoKey: "p256ecdsa=\(publicKey),dh=AAAA")
    }

    @Test func `a padded key is understood`() throws {
        try verify("vapid t=\(try token(claims())), k=\(publicKey)=")
    }

    @Test func `a part of a token that is not canonical base64url is refused`() throws {
        let text = try token(claims())
        // 64 bytes are 86 characters, of which the last has four unused bits.
        let last = try #require(text.last)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let place = try #require(alphabet.firstIndex(of: last))
        #expect(throws: Refusal.self) { try verify("vapid t=\(text.dropLast())\(alphabet[place + 1]), k=\(publicKey)") }
        try verify("vapid t=\(text), k=\(publicKey)")
    }

    @Test func `other kinds of authorization are none of our business`() throws {
        #expect(try VapidCredentials(authorization: nil, cryptoKey: nil) == nil)
        #expect(try VapidCredentials(authorization: "Basic abc", cryptoKey: nil) == nil)
        #expect(try VapidCredentials(authorization: "Bearer abc", cryptoKey: nil) == nil)
    }

    @Test(arguments: [86_400, 86_400 + 300, 1, 0, -29])
    func `a day ahead is accepted, with a leeway for clocks at either end`(seconds: Int64) throws {
        try verify("vapid t=\(try token(claims(after: seconds))), k=\(publicKey)")
    }

    @Test(arguments: [86_400 + 301, -30, -31, -300])
    func `beyond a day, or past, is refused`(seconds: Int64) throws {
        let text = "vapid t=\(try token(claims(after: seconds))), k=\(publicKey)"
        #expect(throws: Refusal.self) { try verify(text) }
    }

    @Test(arguments: [
        #"["https://other.example","https://push.example.net"]"#, #""https://PUSH.example.net/""#,
        #""https://push.example.net:443""#, #""https://old.example.net:8443""#, #""https://old.example.net:8443/""#,
    ])
    func `the audience may be a list, and is an origin`(aud: String) throws {
        try verify("vapid t=\(try token(claims(aud: aud))), k=\(publicKey)")
    }

    @Test(arguments: [
        #""https://other.example""#, #""http://push.example.net""#, "7", "[]", #""https://old.example.net""#,
        #""https://push.example.net/push/x""#, #""https://old.example.net:8443/push-server""#,
    ])
    func `another audience is refused`(aud: String) throws {
        let text = "vapid t=\(try token(claims(aud: aud))), k=\(publicKey)"
        #expect(throws: Refusal.self) { try verify(text) }
    }

    @Test(arguments: [
        ("https://push.example.net:8443", true), ("https://push.example.net:80/", true),
        ("https://other.example:8443", false),
        ("http://push.example.net", false), ("push.example.net", false), ("", false),
    ])
    func `an audience that differs by its port alone is explained`(aud: String, differsByPort: Bool) throws {
        let text = "vapid t=\(try token(claims(aud: "\"\(aud)\""))), k=\(publicKey)"
        let refusal = #expect(throws: Refusal.self) { try verify(text) }
        #expect(refusal?.detail.contains("The port differs.") == differsByPort)
        #expect(
            refusal?.detail.contains("\"\(aud)\"") == true && refusal?.detail.contains("https://push.example.net,") == true)
    }

    @Test func `a signature of another key, no signature, and another algorithm are refused`() throws {
        let forged = try token(claims(), by: P256.Signing.PrivateKey())
        let unsigned = try token(claims(), header: #"{"alg":"none"}"#)
        let textual = try token(#"{"aud":"https://push.example.net","exp":"\#(now.seconds + 60)"}"#)
        for bad in [forged, unsigned, textual, "a.b.c", "a.b", "", "..", String(repeating: "a", count: 9000)] {
            #expect(throws: Refusal.self) { try verify("vapid t=\(bad), k=\(publicKey)") }
        }
        for bad in ["vapid", "vapid t=x", "vapid k=x", "vapid t=\(try token(claims())), k=AAAA", "WebPush abc"] {
            #expect(throws: (any Error).self) { try verify(bad) }
        }
    }

    @Test func `a token has 4096 bytes at the most`() throws {
        func padded(_ count: Int) throws -> String {
            let more = #","sub":"\#(String(repeating: "x", count: count))"}"#
            return try token("\(claims().dropLast())\(more)")
        }
        let (longest, longer) = (try padded(2900), try padded(3050))
        #expect((3900...4096).contains(longest.utf8.count) && (4097...4300).contains(longer.utf8.count))
        try verify("vapid t=\(longest), k=\(publicKey)")
        #expect(throws: Refusal.self) { try verify("vapid t=\(longer), k=\(publicKey)") }
    }

    // MARK: Remembering

    @Test func `a valid token is valid until it expires, and not longer, by a clock that moves in any direction`() throws {
        let verified = VerifiedVapidTokens(addresses: addresses)
        let credentials = try #require(
            try VapidCredentials(authorization: "vapid t=\(try token(claims(after: 100))), k=\(publicKey)", cryptoKey: nil))
        for seconds in [0, 50, 129] as [Int64] { try verified.verify(credentials, at: now.adding(seconds: seconds)) }
        #expect(verified.rememberedCount == 1)
        for seconds in [130, 10_000, -90_000] as [Int64] {
            #expect(throws: Refusal.self) { try verified.verify(credentials, at: now.adding(seconds: seconds)) }
        }
        try verified.verify(credentials, at: now)
    }

    @Test func `a verified key or token does not verify another one`() throws {
        let verified = VerifiedVapidTokens(addresses: addresses)
        let other = P256.Signing.PrivateKey()
        let good = try token(claims())
        func credentials(_ token: String, _ key: P256.Signing.PrivateKey) throws -> VapidCredentials {
            let key = Base64URL.encode(key.publicKey.x963Representation)
            return try #require(try VapidCredentials(authorization: "vapid t=\(token), k=\(key)", cryptoKey: nil))
        }
        try verified.verify(credentials(good, key), at: now)
        #expect(throws: Refusal.self) { try verified.verify(credentials(good, other), at: now) }
        #expect(throws: Refusal.self) { try verified.verify(credentials(good + "A", key), at: now) }
        #expect(throws: Refusal.self) { try verified.verify(credentials(try token(claims(), by: other), key), at: now) }
        #expect(verified.rememberedCount == 1)
    }

    @Test func `a token that was refused is not remembered, and no more are than there may be`() throws {
        let verified = VerifiedVapidTokens(addresses: addresses, capacity: 4)
        for seconds in Int64(1)...20 {
            let text = "vapid t=\(try token(claims(after: seconds))), k=\(publicKey)"
            let credentials = try #require(try VapidCredentials(authorization: text, cryptoKey: nil))
            try verified.verify(credentials, at: now)
            #expect(throws: Refusal.self) { try verified.verify(credentials, at: now.adding(seconds: 1000)) }
        }
        #expect((1...8).contains(verified.rememberedCount))
        let early = VerifiedVapidTokens(addresses: addresses)
        let credentials = try #require(
            try VapidCredentials(
                authorization: "vapid t=\(try token(claims(after: 90_000))), k=\(publicKey)", cryptoKey: nil))
        #expect(throws: Refusal.self) { try early.verify(credentials, at: now) }
        #expect(early.rememberedCount == 0)
    }
}
