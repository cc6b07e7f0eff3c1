import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import Foundation
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Users by HTTP, over a key set that the test publishes and a clock that it moves.
@Suite(.timeLimit(.minutes(5)))
struct UserRoutesTests {
    private final class World: Sendable {
        /// The answer of the key set's address, and how often it was called.
        let answer = Mutex<UserKeyFetcher.Answer>(.failed("nothing was published"))
        let asked = Mutex(0)
        let now = Mutex(Timestamp(milliseconds: 1_800_000_000_000))

        var fetcher: UserKeyFetcher {
            UserKeyFetcher { _ in
                self.asked.withLock { $0 += 1 }
                try? await Task.sleep(for: .milliseconds(20))
                return self.answer.withLock { $0 }
            }
        }

        var time: TimeSource { TimeSource { self.now.withLock { $0 } } }
        var ticks: TickSource { TickSource { self.now.withLock { $0.milliseconds * 1_000_000 } } }

        func publish(_ signer: TokenSigner, _ id: String) throws {
            let keys = "{\"keys\":[\(try signer.jwk(id))]}"
            answer.withLock { $0 = .found(Array(keys.utf8)) }
        }

        func pass(_ seconds: Int64) { now.withLock { $0 = $0.adding(seconds: seconds) } }

        func token(
            _ user: String, by signer: TokenSigner, _ id: String? = "one", audience: String = "com.example.app"
        ) throws -> String {
            let expiry = now.withLock(\.seconds) + 60
            return try signer.token(
                #"{"sub":"\#(user)","aud":"\#(audience)","exp":\#(expiry)}"#, header: id.map { ["kid": "\"\($0)\""] } ?? [:])
        }
    }

    private let world = World()
    private let signer = TokenSigner.es256(P256.Signing.PrivateKey())

    private func routes(wrapped: Bool = true) async throws -> RouteFixture {
        try await RouteFixture(
            key: wrapped ? WrappingKey(bytes: Array(repeating: 1, count: 32)) : nil, userKeys: world.fetcher,
            time: world.time, ticks: world.ticks)
    }

    @discardableResult
    private func configure(
        _ routes: RouteFixture, _ body: String = #"{"jwksURL":"https://id.example/keys"}"#
    ) async throws -> RouteFixture.Answer {
        try await routes.request(.put, "/v1/apps/com.example.app/users", key: routes.admin, body)
    }

    private func say(_ value: String, _ routes: RouteFixture, _ credential: String) async throws -> RouteFixture.Answer {
        try await routes.request(.patch, "/v1/device", key: credential, #"{"userToken":\#(value)}"#)
    }

    @Test func `a token sets the user of a device, null removes it, and an absent member keeps it`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        try world.publish(signer, "one")
        #expect(try await configure(routes).status == 200)
        let signedIn = try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential)
        #expect(signedIn.status == 200 && signedIn["user"] == "ada")
        let replaced = try await routes.request(.put, "/v1/device", key: device.credential, #"{"appVersion":"2"}"#)
        #expect(replaced["user"] == "ada" && replaced["appVersion"] == "2")
        let list = try await routes.request(
            .get, "/v1/apps/com.example.app/devices?user=ada", key: routes.admin)
        #expect(String(decoding: list.body, as: UTF8.self).contains(device.id))
        let others = try await routes.request(.get, "/v1/apps/com.example.app/devices?user=bob", key: routes.admin)
        #expect(!String(decoding: others.body, as: UTF8.self).contains(device.id))
        let out = try await say("null", routes, device.credential)
        #expect(out.status == 200 && out.json?["user"] == nil)
        let token = try world.token("bob", by: signer)
        let new = try await routes.request(
            .post, "/v1/devices", key: device.clientKey, #"{"userToken":"\#(token)"}"#)
        #expect(new.status == 201)
        #expect(try await routes.request(.get, "/v1/device", key: new["credential"])["user"] == "bob")
    }

    @Test func `a key set with a private key is refused, and nothing of it is stored or logged`() async throws {
        let logs = LogCatcher()
        let routes = try await RouteFixture(userKeys: world.fetcher, time: world.time, logger: logs.logger)
        let device = try await routes.device()
        let secret = "c2VjcmV0LXBhcnQtb2YtYS1rZXk"
        let jwk = try signer.jwk("one", #","d":"\#(secret)""#)
        let refused = try await configure(routes, #"{"jwks":{"keys":[\#(jwk)]}}"#)
        #expect(refused.status == 400 && refused.code == "user_rules_invalid")
        #expect(refused["detail"].contains("The key set contains a private key"))
        #expect(!String(decoding: refused.body, as: UTF8.self).contains(secret))
        let rules = try await routes.request(.get, "/v1/apps/com.example.app/users", key: routes.admin)
        #expect(rules.code == "user_rules_unknown")
        // The same set at the app's address.
        try await configure(routes)
        world.answer.withLock { $0 = .found(Array("{\"keys\":[\(jwk)]}".utf8)) }
        let answer = try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential)
        #expect(answer.code == "user_keys_unavailable")
        #expect(!String(decoding: answer.body, as: UTF8.self).contains(secret))
        #expect(logs.text.contains("The key set contains a private key"))
        #expect(!logs.text.contains(secret))
    }

    @Test func `without rules no user token is believed, and none is written`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        let token = try world.token("ada", by: signer)
        let answer = try await say("\"\(token)\"", routes, device.credential)
        #expect(answer.status == 409 && answer.code == "users_not_configured")
        let before = try await routes.request(.get, "/v1/apps/com.example.app/devices", key: routes.admin).body
        let new = try await routes.request(.post, "/v1/devices", key: device.clientKey, #"{"userToken":"\#(token)"}"#)
        #expect(new.code == "users_not_configured")
        #expect(try await routes.request(.get, "/v1/apps/com.example.app/devices", key: routes.admin).body == before)
        #expect(try await say("null", routes, device.credential).status == 200)
        #expect(try await say("7", routes, device.credential).code == "field_invalid")
    }

    @Test func `a token that is forged, expired or of another app is refused, and changes nothing`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        try world.publish(signer, "one")
        try await configure(routes)
        _ = try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential)
        let thief = TokenSigner.es256(P256.Signing.PrivateKey())
        let expired = try world.token("bob", by: signer)
        let forged = [
            try world.token("bob", by: thief), try world.token("bob", by: thief, "two"),
            try world.token("bob", by: signer, audience: "com.example.other"),
            try signer.token(#"{"sub":"bob","aud":"com.example.app","exp":1900000000}"#, header: ["alg": "\"none\""]),
            "no token",
        ]
        for token in forged {
            let answer = try await say("\"\(token)\"", routes, device.credential)
            #expect(answer.status == 401 && answer.code == "user_token_invalid", "\(token)")
        }
        world.pass(91)
        #expect(try await say("\"\(expired)\"", routes, device.credential).code == "user_token_invalid")
        #expect(try await routes.request(.get, "/v1/device", key: device.credential)["user"] == "ada")
    }

    @Test func `apps with keys of one name do not believe each other's users`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        _ = try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.other"}"#)
        let other = TokenSigner.es256(P256.Signing.PrivateKey())
        try await configure(routes, #"{"jwks":{"keys":[\#(signer.jwk("one"))]}}"#)
        let theirs = try await routes.request(
            .put, "/v1/apps/com.example.other/users", key: routes.admin,
            #"{"jwks":{"keys":[\#(other.jwk("one"))]},"audience":"com.example.app"}"#)
        #expect(theirs.status == 200 && theirs.json?["keys"] == .integer(1))
        let foreign = try await say("\"\(world.token("ada", by: other))\"", routes, device.credential)
        #expect(foreign.code == "user_token_invalid")
        #expect(try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential).status == 200)
        #expect(world.asked.withLock { $0 } == 0)
    }

    @Test func `the address of a key set can set a longer wait than five minutes`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        try await configure(routes)
        world.answer.withLock { $0 = .failed("it is overloaded", wait: .seconds(1200)) }
        let down = try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential)
        #expect(down.code == "user_keys_unavailable" && down.headers[.retryAfter] == "1200")
        try world.publish(signer, "one")
        world.pass(1199)
        let early = try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential)
        #expect(early.code == "user_keys_unavailable" && world.asked.withLock { $0 } == 1)
        world.pass(1)
        #expect(try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential).status == 200)
    }

    @Test func `a key set is fetched once in five minutes, for all waiters, and is valid for a day`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        try await configure(routes)
        let token = try world.token("ada", by: signer)
        let down = try await say("\"\(token)\"", routes, device.credential)
        #expect(down.status == 503 && down.code == "user_keys_unavailable" && down.headers[.retryAfter] == "300")
        try world.publish(signer, "one")
        #expect(try await say("\"\(token)\"", routes, device.credential).code == "user_keys_unavailable")
        #expect(world.asked.withLock { $0 } == 1)
        world.pass(300)
        let later = try world.token("ada", by: signer)
        try await withThrowingTaskGroup { group in
            for _ in 0..<5 {
                group.addTask { try await self.say("\"\(later)\"", routes, device.credential).status }
            }
            for try await status in group { #expect(status == 200) }
        }
        #expect(world.asked.withLock { $0 } == 2)
        // A key that is published meanwhile is not known yet; when it can be fetched, the one before is believed no more.
        let next = TokenSigner.es256(P256.Signing.PrivateKey())
        try world.publish(next, "two")
        let early = try await say("\"\(world.token("bob", by: next, "two"))\"", routes, device.credential)
        #expect(early.code == "user_token_invalid" && early.headers[.retryAfter] == "300")
        let over = try next.token(
            #"{"sub":"bob","aud":"com.example.app","exp":1700000000}"#, header: ["kid": "\"two\""])
        let late = try await say("\"\(over)\"", routes, device.credential)
        #expect(late.code == "user_token_invalid" && late.headers[.retryAfter] == nil, "it is not worth coming back with")
        world.pass(300)
        #expect(try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential).status == 401)
        #expect(try await say("\"\(world.token("bob", by: next, "two"))\"", routes, device.credential).status == 200)
        world.answer.withLock { $0 = .failed("down") }
        world.pass(86_399)
        #expect(try await say("\"\(world.token("bob", by: next, "two"))\"", routes, device.credential).status == 200)
        world.pass(301)
        #expect(try await say("\"\(world.token("bob", by: next, "two"))\"", routes, device.credential).status == 503)
        // An invalid token causes no call.
        world.pass(301)
        let asked = world.asked.withLock { $0 }
        #expect(try await say("\"a.b.c\"", routes, device.credential).status == 401)
        #expect(world.asked.withLock { $0 } == asked)
    }

    @Test func `other rules apply at once, and begin anew`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        try await configure(routes)
        let token = try world.token("ada", by: signer)
        #expect(try await say("\"\(token)\"", routes, device.credential).status == 503)
        try world.publish(signer, "one")
        try await configure(routes)
        #expect(try await say("\"\(token)\"", routes, device.credential).status == 200)
        let secret = String(repeating: "x", count: 32)
        let answer = try await configure(routes, #"{"secrets":["\#(secret)"],"issuer":"https://id.example"}"#)
        #expect(answer.json?["secrets"] == .integer(1) && answer["issuer"] == "https://id.example")
        #expect(!String(decoding: answer.body, as: UTF8.self).contains(secret))
        #expect(try await say("\"\(token)\"", routes, device.credential).status == 401)
        let shared = try TokenSigner.hs256(secret).token(
            #"{"iss":"https://id.example","sub":"bob","aud":"com.example.app","exp":1900000000}"#)
        #expect(try await say("\"\(shared)\"", routes, device.credential)["user"] == "bob")
        let shown = try await routes.request(.get, "/v1/apps/com.example.app/users", key: routes.admin)
        #expect(shown.body == answer.body)
        let gone = try await routes.request(.delete, "/v1/apps/com.example.app/users", key: routes.admin)
        #expect(gone.status == 204)
        #expect(try await say("\"\(shared)\"", routes, device.credential).code == "users_not_configured")
        #expect(try await routes.request(.get, "/v1/device", key: device.credential)["user"] == "bob")
        let none = try await routes.request(.get, "/v1/apps/com.example.app/users", key: routes.admin)
        #expect(none.code == "user_rules_unknown")
    }

    @Test(arguments: [
        "{}", #"{"jwksURL":"http://id.example/keys"}"#, #"{"jwksURL":"https://127.0.0.1/keys"}"#, #"{"jwksURL":7}"#,
        #"{"jwksURL":"https://user@id.example/"}"#, #"{"jwks":{"keys":[]}}"#, #"{"jwks":[]}"#, #"{"secrets":[]}"#,
        #"{"secrets":["short"]}"#, #"{"secrets":[7]}"#, #"{"jwksURL":"https://id.example/","secrets":["x"]}"#,
        #"{"jwksURL":"https://id.example/","algorithms":["HS256"]}"#,
        #"{"jwksURL":"https://id.example/","algorithms":["none"]}"#,
        #"{"jwksURL":"https://id.example/","algorithms":[]}"#, #"{"jwksURL":"https://id.example/","issuer":""}"#,
        #"{"jwksURL":"https://id.example/","leeway":900}"#,
    ])
    func `rules that cannot work are refused, and none are set`(body: String) async throws {
        let routes = try await routes()
        _ = try await routes.device()
        #expect(try await configure(routes, body).status == 400)
        let shown = try await routes.request(.get, "/v1/apps/com.example.app/users", key: routes.admin)
        #expect(shown.status == 404)
    }

    @Test func `secrets want a key file, eleven are too many, and rules want an admin and an app`() async throws {
        let plain = try await routes(wrapped: false)
        let device = try await plain.device()
        let secret = "\"\(String(repeating: "x", count: 32))\""
        #expect(try await configure(plain, #"{"secrets":[\#(secret)]}"#).code == "key_file_missing")
        let routes = try await routes()
        _ = try await routes.device()
        func many(_ count: Int) -> String {
            #"{"secrets":[\#(Array(repeating: secret, count: count).joined(separator: ","))]}"#
        }
        #expect(try await configure(routes, many(10)).status == 200)
        #expect(try await configure(routes, many(11)).code == "user_rules_invalid")
        let stranger = try await plain.request(
            .put, "/v1/apps/com.example.app/users", key: device.clientKey, #"{"secrets":[\#(secret)]}"#)
        #expect(stranger.status == 403)
        let nobody = try await plain.request(.get, "/v1/apps/com.example.none/users", key: plain.admin)
        #expect(nobody.code == "app_unknown")
    }

    @Test func `a channel that was opened for a user is closed when the device has another one`() async throws {
        let routes = try await routes()
        let device = try await routes.device()
        try await configure(routes, #"{"jwks":{"keys":[\#(signer.jwk("one"))]}}"#)
        func open(_ name: String) async throws -> RouteFixture.Answer {
            try await routes.request(
                .post, "/v1/device/channels", key: device.credential, #"{"channelID":"\#(name)"}"#)
        }
        func send(to token: String) async throws -> Int {
            do {
                _ = try await routes.domain.publisher.channel(of: token)
                return 201
            } catch let refusal as Refusal {
                return refusal.code.status
            }
        }
        let free = try await open("00000000-0000-4000-8000-000000000001")
        _ = try await say("\"\(world.token("ada", by: signer))\"", routes, device.credential)
        let hers = try await open("00000000-0000-4000-8000-000000000002")
        #expect(hers.status == 201)
        #expect(try await send(to: hers["token"]) == 201)
        _ = try await say("\"\(world.token("bob", by: signer))\"", routes, device.credential)
        let channels = try await routes.request(.get, "/v1/device/channels", key: device.credential)
        let text = String(decoding: channels.body, as: UTF8.self)
        #expect(text.contains("00000000-0000-4000-8000-000000000001") && !text.contains("000000000002"))
        let inbox = try await routes.request(.get, "/v1/inbox", key: device.credential)
        #expect(String(decoding: inbox.body, as: UTF8.self).contains("203"), "the app hears why")
        #expect(try await send(to: hers["token"]) == 410)
        #expect(try await send(to: free["token"]) == 201)
        let again = try await open("00000000-0000-4000-8000-000000000002")
        #expect(again.status == 201 && again["token"] != hers["token"])
    }
}
