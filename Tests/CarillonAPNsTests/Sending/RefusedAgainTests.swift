import CarillonAPNs
import Foundation
import NIOHTTP2
import Synchronization
import TestSupport
import Testing

/// How often a push is sent again that the service refuses again and again.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct RefusedAgainTests {
    private static func stands(_ clock: ManualTime) -> (inout APNsClient.Configuration) -> Void {
        return {
            $0.timeSource = clock.source
            $0.timeout = .seconds(86_400)
            $0.pool.suspectsAfter = .seconds(86_400)
            $0.pool.pingsAfterIdle = .seconds(86_400)
        }
    }

    @Test func `connections are replaced for a refused token once a minute`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: Self.stands(clock)) { $0.reject($1, 403, "ExpiredProviderToken") }
        func send() async throws {
            let response = try await stage.client.send(.alert("Hi"), to: Samples.token)
            #expect(response.rejection?.reason == .expiredProviderToken)
        }
        // Twice there is a new token; after that the connections alone are new.
        for connections in 2...5 {
            for _ in 0..<5 { try await send() }
            #expect(stage.server.requests.map(\.connection).max() == connections)
            clock.advance(.seconds(61))
            if connections >= 3 { try await send() }
        }
        #expect(Set(stage.server.requests.compactMap { $0.headers["authorization"] }).count == 3)
        try await stage.end()
    }

    @Test func `a refusal for its topic moves a push once`() async throws {
        let clock = ManualTime(wall: Int64(Date().timeIntervalSince1970))
        let held = Mutex<[(connection: ServerConnection, request: ServerRequest)]>([])
        // With a certificate another push can be sent beside the waiting one.
        let (certificate, key) = try TestCertificates().issue()
        let stage = try await Stage(
            credentials: .certificate(try APNsCertificate(pem: certificate, privateKeyPEM: key)),
            configure: Self.stands(clock)
        ) { connection, request in
            guard request.headers["apns-topic"] == "com.example.new" else { return connection.accept(request) }
            if connection.number == 2 {
                held.withLock { $0.append((connection, request)) }
            } else {
                connection.reject(request, 400, "TopicDisallowed")
            }
        }
        let client = stage.client
        #expect(try await client.send(.alert("Hi"), to: Samples.token).isAccepted)
        let push = Task { try await client.send(.alert("Hi").bundleID("com.example.new"), to: Samples.token) }
        try await eventually { held.withLock { !$0.isEmpty } }
        // The second connection has accepted something, and a connection may be replaced for a topic again.
        #expect(try await client.send(.alert("Hi"), to: Samples.token).isAccepted)
        clock.advance(.seconds(61))
        for (connection, request) in held.withLock({ $0 }) { connection.reject(request, 400, "TopicDisallowed") }
        #expect(try await push.value.rejection?.reason == .topicDisallowed)
        let moves = stage.server.requests.filter { $0.headers["apns-topic"] == "com.example.new" }
        #expect(moves.map(\.connection) == [1, 2])
        try await stage.end()
    }

    @Test(arguments: [
        (403, "ExpiredProviderToken"), (403, "InvalidProviderToken"), (429, "TooManyProviderTokenUpdates"),
    ])
    func `a refusal for its provider token sends a push again once`(status: Int, reason: String) async throws {
        let clock = ManualTime()
        let held = Mutex<[(connection: ServerConnection, request: ServerRequest)]>([])
        let stage = try await Stage(configure: Self.stands(clock)) { connection, request in
            if connection.number == 2 {
                held.withLock { $0.append((connection, request)) }
            } else {
                connection.reject(request, status, reason)
            }
        }
        let client = stage.client
        let push = Task { try await client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { held.withLock { !$0.isEmpty } }
        // A token can be replaced again, and so can a connection.
        clock.advance(.seconds(61))
        for (connection, request) in held.withLock({ $0 }) { connection.reject(request, status, reason) }
        #expect(try await push.value.rejection?.reason?.rawValue == reason)
        #expect(stage.server.requests.map(\.connection) == [1, 2])
        try await stage.end()
    }

    @Test func `a stream that is refused again and again waits before it is sent again`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: Self.stands(clock)) { connection, request in
            request.token == "ab" ? connection.reset(request.stream, .refusedStream) : connection.accept(request)
        }
        let (client, server) = (stage.client, stage.server)
        let attempts: @Sendable () -> Int = { server.requests.count { $0.token == "ab" } }
        // When another push is answered, the refusals before it were read.
        func other() async throws { #expect(try await client.send(.alert("Hi"), to: "cd").isAccepted) }
        let push = Task { try await client.send(.alert("Hi"), to: "ab") }
        try await eventually { attempts() == 9 }
        for (milliseconds, expected) in [(50, 9), (100, 10), (200, 11)] {
            for _ in 0..<3 { try await other() }
            clock.advance(.milliseconds(milliseconds - 1))
            try await other()
            // Longer than the client needs to read its clock.
            try await Task.sleep(for: .milliseconds(60))
            #expect(attempts() == expected)
            clock.advance(.milliseconds(1))
            try await eventually { attempts() == expected + 1 }
        }
        push.cancel()
        _ = await push.result
        try await stage.end()
    }
}
