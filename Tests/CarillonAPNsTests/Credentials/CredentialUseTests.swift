import CarillonAPNs
import Synchronization
import Testing

/// Keys, tokens and topics while a client runs.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct CredentialUseTests {
    @Test func `an expired provider token is renewed once at most, and never within twenty minutes`() async throws {
        let seen = Mutex<Set<String>>([])
        let stage = try await Stage { connection, request in
            _ = seen.withLock { $0.insert(request.headers["authorization"] ?? "") }
            connection.reject(request, 403, "ExpiredProviderToken")
        }
        var expired = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(20)) {
            if result.rejection?.reason == .expiredProviderToken { expired += 1 }
        }
        #expect(expired == 20)
        #expect(seen.withLock { $0.count } == 1)
        try await stage.end()
    }

    @Test func `an old token that the service calls expired is renewed, and the push goes through`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: { $0.timeSource = clock.source }) { connection, request in
            connection.number == 1 && request.stream > 1
                ? connection.reject(request, 403, "ExpiredProviderToken") : connection.accept(request)
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        clock.advance(.seconds(25 * 60))
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        let tokens = stage.server.requests.compactMap { $0.headers["authorization"] }
        #expect(tokens.count == 3)
        #expect(tokens[0] == tokens[1])
        #expect(tokens[1] != tokens[2])
        #expect(stage.server.requests.map(\.connection) == [1, 1, 2])
        try await stage.end()
    }

    @Test func `the key that a client has already keeps its token`() async throws {
        let stage = try await Stage()
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        try stage.client.rotate(to: try Samples.credentials())
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(Set(stage.server.requests.compactMap { $0.headers["authorization"] }).count == 1)
        #expect(stage.server.requests.map(\.connection) == [1, 2])
        try await stage.end()
    }

    @Test func `new credentials continue on new connections`() async throws {
        let stage = try await Stage()
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        try stage.client.rotate(
            to: .token(try APNsTokenKey(pem: Samples.keyPEM, keyID: "ZZZZZZZZZZ", teamID: "KLMNOPQRST")))
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(stage.server.requests.map(\.connection) == [1, 2])
        #expect(Set(stage.server.requests.compactMap { $0.headers["authorization"] }).count == 2)
        try await stage.end()
    }

    @Test func `a topic that a connection does not know is tried on a new one`() async throws {
        let stage = try await Stage { connection, request in
            if connection.number == 1, request.headers["apns-topic"] == "com.example.new" {
                connection.reject(request, 400, "TopicDisallowed")
            } else {
                connection.accept(request)
            }
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(try await stage.client.send(.alert("Hi").bundleID("com.example.new"), to: Samples.token).isAccepted)
        #expect(stage.server.requests.map(\.connection) == [1, 1, 2])
        try await stage.end()
    }
}
