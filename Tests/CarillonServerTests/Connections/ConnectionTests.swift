import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import Foundation
import NIOCore
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct ConnectionTests {
    private static let message = ["Content-Encoding: identity"]

    // MARK: Spelling

    @Test func `one request in many spellings is one message each`() async throws {
        try await ServedConnections.run { server in
            let (token, _, device) = try await server.openChannel()
            for target in ["/push/\(token)", "//push//\(token)", "/push/\(token)/", "http://h/push/\(token)//?up=1"] {
                let answer = try await server.request("POST \(target)", Self.message + ["TTL: 60"], "x")
                #expect(answer.status == 201, "\(target)")
            }
            for fields in [["TTL: 60 \t", "Topic:\ta\t "], ["TTL: 60", "TTL: 60"], ["TTL: 60, 60", "Urgency: high "]] {
                let answer = try await server.request("POST /push/\(token)", Self.message + Self.message + fields, "x")
                #expect(answer.status == 201, "\(fields)")
            }
            for fields in [
                ["TTL: 60", "TTL: 61"], ["TTL: 60", "Content-Encoding: aes128gcm"], ["TTL: 60", "Transfer-Encoding:"],
            ] {
                let answer = try await server.request("POST /push/\(token)", Self.message + fields, "x")
                #expect(answer.status == 400, "\(fields)")
            }
            #expect(try await server.home(of: device).runtime.inbox.waitingCount(device: device) == 7)
        }
    }

    @Test func `a percent-encoded unreserved character is that character at every address`() async throws {
        try await ServedConnections.run { server in
            let (token, _, device) = try await server.openChannel()
            func encoded(_ text: String) -> String { text.utf8.map { "%" + String($0, radix: 16) }.joined() }
            let sent = try await server.request("POST /push/\(encoded(token))", Self.message + ["TTL: 60"], "x")
            #expect(sent.status == 201)
            let id = String(try #require(sent["location"]?.split(separator: "/").last))
            #expect(try await server.request("GET /push/\(encoded(token))").status == 200)
            #expect(try await server.request("GET /push/\(encoded(token))/watch").body.contains("watch_unknown"))
            #expect(try await server.request("GET /message/\(encoded(id))").status == 200)
            #expect(try await server.request("GET /health/liv%65").status == 200)
            #expect(try await server.request("GET /health%2Flive").status == 404)
            let body =
                #"{"notification":{"devices":[{"pushkey":"https://push.example.com/push/\#(encoded(token))"}]}}"#
            let matrix = try await server.request("POST /_matrix/push/v1/notify", [], body)
            #expect(matrix.body == #"{"rejected":[]}"#)
            #expect(try await server.home(of: device).runtime.inbox.waitingCount(device: device) == 2)
            #expect(try await server.request("DELETE /message/\(encoded(id))").status == 204)
        }
    }

    @Test func `OPTIONS checks whether the server is running`() async throws {
        try await ServedConnections.run { server in
            for target in ["/", "*"] {
                let answer = try await server.request("OPTIONS \(target)")
                #expect(answer.status == 204 && answer["allow"] == "GET, HEAD, OPTIONS", "\(target)")
                #expect(answer.body.isEmpty)
            }
            // The request of HAProxy with "option httpchk".
            #expect(try await server.exchange("OPTIONS / HTTP/1.0\r\n\r\n").hasPrefix("HTTP/1.0 204 "))
            #expect(try await server.request("PUT /")["allow"] == "GET, HEAD, OPTIONS")
            #expect(try await server.request("OPTIONS /v1/apps").status == 405)
        }
    }

    @Test func `a TTL is shortened to thirty days, and the answer contains it`() async throws {
        try await ServedConnections.run { server in
            let (token, _, device) = try await server.openChannel()
            for ttl in ["2592001", "2147483648", "99999999999999999999"] {
                let answer = try await server.request("POST /push/\(token)", Self.message + ["TTL: \(ttl)"], "x")
                #expect(answer["ttl"] == "2592000")
                let id = answer["location"]?.split(separator: "/").last.flatMap { MessageID(String($0)) }
                let record = try await server.home(of: device).runtime.inbox.record(of: try #require(id))
                let kept = record.map { $0.expiresAt.milliseconds - $0.acceptedAt.milliseconds }
                #expect(kept == 2_592_000_000)
            }
        }
    }

    // MARK: VAPID

    private static func token(_ key: P256.Signing.PrivateKey, claims: String) throws -> String {
        let text = Base64URL.encode(#"{"alg":"ES256"}"#.utf8) + "." + Base64URL.encode(claims.utf8)
        return text + "." + Base64URL.encode(try key.signature(for: Data(text.utf8)).rawRepresentation)
    }

    private static func field(_ token: String, _ key: P256.Signing.PrivateKey) -> [String] {
        ["TTL: 60", "Authorization: vapid t=\(token), k=\(Base64URL.encode(key.publicKey.x963Representation))"]
    }

    @Test func `credentials in a request are checked on an open channel, too`() async throws {
        let key = P256.Signing.PrivateKey()
        let seconds = Int(Date().timeIntervalSince1970)
        let claims = #"{"aud":"https://push.example.com","exp":\#(seconds + 600)}"#
        let elsewhere = #"{"aud":"https://other.example.com","exp":\#(seconds + 600)}"#
        try await ServedConnections.run { server in
            let (token, _, device) = try await server.openChannel()
            let forged = Self.field(try Self.token(P256.Signing.PrivateKey(), claims: claims), key)
            let foreign = Self.field(try Self.token(key, claims: elsewhere), key)
            for ttl in ["60", "0"] {
                for fields in [forged, foreign, ["Authorization: vapid t=a.b.c, k=AAAA"], ["Authorization: WebPush x"]] {
                    let all = Self.message + fields.filter { !$0.hasPrefix("TTL") } + ["TTL: \(ttl)"]
                    let answer = try await server.request("POST /push/\(token)", all, "x")
                    #expect(answer.status == 403, "\(fields)")
                    #expect(answer.body.contains("vapid_invalid"))
                }
            }
            #expect(try await server.home(of: device).runtime.inbox.waitingCount(device: device) == 0)
            let good = Self.message + Self.field(try Self.token(key, claims: claims), key)
            #expect(try await server.request("POST /push/\(token)", good, "x").status == 201)
        }
    }

    @Test func `a restricted channel answers 401 with a challenge without credentials, and 403 to wrong ones`() async throws
    {
        let key = P256.Signing.PrivateKey()
        let claims = #"{"aud":"https://push.example.com","exp":\#(Int(Date().timeIntervalSince1970) + 600)}"#
        try await ServedConnections.run { server in
            let (token, _, _) = try await server.openChannel(vapidKey: Array(key.publicKey.x963Representation))
            let missing = try await server.request("POST /push/\(token)", Self.message + ["TTL: 60"], "x")
            #expect(missing.status == 401)
            #expect(missing["www-authenticate"] == "Bearer")
            let other = P256.Signing.PrivateKey()
            let wrong = Self.field(try Self.token(other, claims: claims), other)
            let answer = try await server.request("POST /push/\(token)", Self.message + wrong, "x")
            #expect(answer.status == 403)
            #expect(answer["www-authenticate"] == nil)
        }
    }

    // MARK: HEAD

    @Test(arguments: ["/v1/inbox", "/health/live", "/nothing", "/v1/apps"])
    func `an answer to HEAD is the head of that to GET, and the next answer follows it`(path: String) async throws {
        try await ServedConnections.run { server in
            let (_, credential, _) = try await server.openChannel()
            let fields = "Host: h\r\nAuthorization: Bearer \(credential)\r\n"
            let streamed = path == "/v1/inbox" ? "Accept: text/event-stream\r\n" : ""
            let text = try await server.exchange(
                "HEAD \(path) HTTP/1.1\r\n\(fields)\(streamed)\r\n"
                    + "GET /health/live HTTP/1.1\r\n\(fields)Connection: close\r\n\r\n")
            let first = ServedConnections.read(text)
            let second = ServedConnections.read(first.body)
            #expect(second.status == 200)
            #expect(second.body == #"{"status":"live"}"#)
            if streamed.isEmpty {
                let got = try await server.request("GET \(path)", ["Authorization: Bearer \(credential)"])
                #expect(first.status == got.status)
                #expect(first["content-length"] == String(got.body.utf8.count))
            } else {
                #expect(first.status == 200)
                #expect(first["content-type"] == "text/event-stream")
                #expect(first["content-length"] == nil)
            }
        }
    }

    @Test func `a refusal of HEAD has no body`() async throws {
        try await ServedConnections.run { server in
            let text = try await server.exchange("HEAD / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n")
            #expect(ServedConnections.read(text).status == 400)
            #expect(ServedConnections.read(text).body.isEmpty)
        }
    }

    // MARK: Endless data

    @Test(arguments: [
        ("POST /push/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;", "extension", 413),
        (
            "POST /push/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            // Long enough that one turn of reading does not exceed the limit of a body.
            "1;\(String(repeating: "a", count: 100))\r\nx\r\n", 413
        ),
        ("", "\r\n", 431), ("GET / HTTP/1.1\r\nX:", "        ", 431),
    ])
    func `data that the parser skips endlessly is refused`(start: String, piece: String, status: Int) async throws {
        try await ServedConnections.run { server in
            let (text, sent) = try await server.flood(start, String(repeating: piece, count: 2000), atMost: 100_000_000)
            #expect(sent < 100_000_000)
            // The answer may be lost with unsent data.
            if !text.isEmpty { #expect(ServedConnections.read(text).status == status) }
        }
    }

    @Test func `a slow head and a slow body are abandoned after the configured time`() async throws {
        try await ServedConnections.run {
            $0.requests.headSeconds = 1
            $0.requests.bodySeconds = 1
        } _: { server in
            let clock = ContinuousClock()
            for start in ["GET / HT", "POST /push/x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n"] {
                let begin = clock.now
                let answer = ServedConnections.read(try await server.exchange(start))
                #expect(answer.status == 408)
                #expect(clock.now - begin >= .seconds(1))
            }
        }
    }

    // MARK: Pages

    private static func handshake(_ origin: String?) -> String {
        let fields = [
            "GET / HTTP/1.1", "Host: h", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        ]
        // A close frame follows at once.
        return (fields + (origin.map { ["Origin: \($0)"] } ?? [])).joined(separator: "\r\n")
            + "\r\n\r\n\u{08}\u{00}"
    }

    @Test func `a page of another origin gets no socket unless it is listed`() async throws {
        try await ServedConnections.run {
            $0.allowedOrigins = try AllowedOrigins(listing: "https://app.example.com")
        } _: { server in
            for origin in [nil, "https://push.example.com", "https://app.example.com", "wss://h/"] {
                let answer = ServedConnections.read(try await server.exchange(Self.handshake(origin)))
                #expect(answer.status == 101, "\(origin ?? "none")")
            }
            for origin in ["https://evil.example.com", "null"] {
                let answer = ServedConnections.read(try await server.exchange(Self.handshake(origin)))
                #expect(answer.status == 403)
                #expect(answer.body.contains("origin_forbidden"))
            }
        }
    }

    @Test func `a listed page may send and receive, with the secrets that everybody needs`() async throws {
        try await ServedConnections.run {
            $0.allowedOrigins = try AllowedOrigins(listing: "https://app.example.com")
        } _: { server in
            let (token, credential, _) = try await server.openChannel()
            let page = "Origin: https://app.example.com"
            let asked = try await server.request(
                "OPTIONS /push/\(token)",
                [page, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: ttl, content-encoding"])
            #expect(asked.status == 204)
            #expect(asked["access-control-allow-origin"] == "https://app.example.com")
            #expect(asked["vary"] == "origin")
            let sent = try await server.request("POST /push/\(token)", Self.message + [page, "TTL: 60"], "x")
            #expect(sent.status == 201)
            #expect(sent["access-control-allow-origin"] == "https://app.example.com")
            #expect(sent["access-control-expose-headers"]?.contains("Location") == true)
            let secret = "Authorization: Bearer \(credential)"
            let polled = try await server.request("GET /v1/inbox", [page, secret])
            #expect(polled.status == 200)
            #expect(polled["access-control-allow-origin"] == "https://app.example.com")
            let stranger = try await server.request("GET /v1/inbox", [page])
            #expect(stranger.status == 401)
            #expect(stranger["access-control-allow-origin"] == "https://app.example.com")
        }
    }

    @Test func `the permission of one request does not apply to the next one of its connection`() async throws {
        try await ServedConnections.run {
            $0.allowedOrigins = try AllowedOrigins(listing: "https://app.example.com")
        } _: { server in
            let text = try await server.exchange(
                "GET /v1/inbox HTTP/1.1\r\nHost: h\r\nOrigin: https://app.example.com\r\n\r\n"
                    + "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n")
            let first = ServedConnections.read(text)
            #expect(first.status == 401)
            #expect(first["access-control-allow-origin"] == "https://app.example.com")
            let length = first["content-length"].flatMap { Int($0) }
            let second = ServedConnections.read(String(first.body.utf8.dropFirst(try #require(length))) ?? "")
            #expect(second.status == 400)
            #expect(second["access-control-allow-origin"] == nil)
            #expect(second["vary"] == nil)
        }
    }

    @Test func `a page that is not listed gets no permission, and needs the same secrets`() async throws {
        try await ServedConnections.run {
            $0.allowedOrigins = try AllowedOrigins(listing: "https://app.example.com")
        } _: { server in
            let (token, credential, _) = try await server.openChannel()
            let page = "Origin: https://evil.example.com"
            let asked = try await server.request("OPTIONS /push/\(token)", [page, "Access-Control-Request-Method: POST"])
            #expect(asked.status == 405)
            let answers = [
                asked, try await server.request("GET /v1/device", [page]),
                try await server.request("GET /v1/device", [page, "Authorization: Bearer \(credential)"]),
                try await server.request("GET /v1/apps", ["Origin: https://app.example.com"]),
            ]
            #expect(answers.map(\.status) == [405, 401, 200, 401])
            let shared = answers.filter { $0["access-control-allow-origin"] != nil }
            #expect(shared.isEmpty)
        }
    }
}
