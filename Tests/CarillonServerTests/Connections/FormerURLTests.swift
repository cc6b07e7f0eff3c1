import CarillonBasics
import CarillonCore
import Crypto
import Foundation
import Testing

@testable import CarillonServer

/// A server that had other public URLs: the addresses under them are still valid.
@Suite(.timeLimit(.minutes(5)))
struct FormerURLTests {
    private static let urls = [
        "https://push.example.com", "https://old.example.com/push-server", "http://older.example.com:8080",
    ]
    private static let origins = [
        "https://push.example.com", "https://old.example.com", "http://older.example.com:8080",
    ]

    private static func run(_ body: @escaping @Sendable (ServedConnections) async throws -> Void) async throws {
        try await ServedConnections.run {
            $0.publicURL = urls[0]
            $0.formerPublicURLs = Array(urls.dropFirst())
        } _: { server in
            try await body(server)
        }
    }

    @Test func `a Matrix push key with a former URL is delivered`() async throws {
        try await Self.run { server in
            let (token, _, _) = try await server.openChannel()
            func rejected(_ pushkey: String) async throws -> String {
                let body = #"{"notification":{"devices":[{"app_id":"a","pushkey":"\#(pushkey)"}]}}"#
                let answer = try await server.request("POST /_matrix/push/v1/notify", [], body)
                #expect(answer.status == 200)
                return answer.body
            }
            for url in Self.urls {
                #expect(try await rejected("\(url)/push/\(token)") == #"{"rejected":[]}"#, "\(url)")
            }
            #expect(try await rejected("https://other.example.com/push/\(token)").contains("other.example.com"))
        }
    }

    @Test func `a VAPID token for a former origin is accepted`() async throws {
        try await Self.run { server in
            let (token, _, _) = try await server.openChannel()
            let key = P256.Signing.PrivateKey()
            func status(_ audience: String) async throws -> Int {
                let claims = #"{"aud":"\#(audience)","exp":\#(Int64(Date().timeIntervalSince1970) + 3600)}"#
                let signed = Base64URL.encode(#"{"typ":"JWT","alg":"ES256"}"#.utf8) + "." + Base64URL.encode(claims.utf8)
                let signature = try key.signature(for: Data(signed.utf8)).rawRepresentation
                let publicKey = Base64URL.encode(key.publicKey.x963Representation)
                let authorization = "Authorization: vapid t=\(signed).\(Base64URL.encode(signature)), k=\(publicKey)"
                let fields = ["Content-Encoding: identity", "TTL: 60", authorization]
                return try await server.request("POST /push/\(token)", fields, "x").status
            }
            for origin in Self.origins { #expect(try await status(origin) == 201, "\(origin)") }
            #expect(try await status("https://other.example.com") == 403)
        }
    }

    @Test func `a page of a former origin gets a socket`() async throws {
        try await Self.run { (server) async throws in
            func status(_ origin: String) async throws -> Int {
                let fields = [
                    "GET / HTTP/1.1", "Host: h", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Origin: \(origin)",
                ]
                // A close frame follows at once.
                return ServedConnections.read(
                    try await server.exchange(fields.joined(separator: "\r\n") + "\r\n\r\n\u{08}\u{00}")
                ).status
            }
            for origin in Self.origins { #expect(try await status(origin) == 101, "\(origin)") }
            #expect(try await status("https://other.example.com") == 403)
        }
    }

    @Test func `new addresses begin with the present URL`() async throws {
        try await Self.run { server in
            let answer = try await server.request("GET /v1/server")
            #expect(answer.status == 200)
            #expect(answer.body.contains("wss:") && answer.body.contains("push.example.com"))
            #expect(!answer.body.contains("old.example.com") && !answer.body.contains("older.example.com"))
        }
    }
}
