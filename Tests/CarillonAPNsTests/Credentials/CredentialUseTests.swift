import CarillonAPNs
import Synchronization
import Testing

/// Keys, tokens and topics while a client runs.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct CredentialUseTests {
    @Test func `a provider token that is refused as expired is renewed once, and then the waiting pushes end`() async throws
    {
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
        #expect(seen.withLock { $0.count } == 2)
        #expect(stage.server.connections.count == 2)
        try await stage.end()
    }

    @Test func `an old token that the service calls expired is renewed, and the push succeeds`() async throws {
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

    @Test func `a push that is refused for too many provider tokens is sent once more, on a fresh connection`()
        async throws
    {
        let stage = try await Stage { connection, request in
            connection.number == 1 && request.stream > 1
                ? connection.reject(request, 429, "TooManyProviderTokenUpdates") : connection.accept(request)
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        for _ in 0..<4 { #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted) }
        #expect(stage.server.requests.map(\.connection) == [1, 1, 2, 2, 2, 2])
        try await stage.end()
    }

    @Test(arguments: ["ExpiredProviderToken", "InvalidProviderToken"])
    func `a young token that is refused is replaced on a fresh connection`(reason: String) async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: { $0.timeSource = clock.source }) { connection, request in
            connection.number == 1 && request.stream > 1
                ? connection.reject(request, 403, reason) : connection.accept(request)
        }
        for _ in 0..<3 { #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted) }
        let requests = stage.server.requests
        #expect(requests.map(\.connection) == [1, 1, 2, 2])
        let tokens = requests.compactMap { $0.headers["authorization"] }
        #expect(tokens[0] == tokens[1])
        #expect(tokens[1] != tokens[2])
        #expect(tokens[2] == tokens[3])
        try await stage.end()
    }

    @Test func `a token that is refused as one too many is sent once more, and then the refusal counts`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: { $0.timeSource = clock.source }) {
            $0.reject($1, 429, "TooManyProviderTokenUpdates")
        }
        let response = try await stage.client.send(.alert("Hi"), to: Samples.token)
        #expect(response.rejection?.reason == .tooManyProviderTokenUpdates)
        #expect(stage.server.requests.map(\.connection) == [1, 2])
        #expect(Set(stage.server.requests.compactMap { $0.headers["authorization"] }).count == 1)
        try await stage.end()
    }

    @Test func `a connection that was replaced for a topic is no reason to keep one with too many tokens`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: { $0.timeSource = clock.source }) { connection, request in
            let isNew = request.headers["apns-topic"] == "com.example.new"
            if connection.number == 1, isNew {
                connection.reject(request, 400, "TopicDisallowed")
            } else if connection.number == 2, !isNew {
                connection.reject(request, 429, "TooManyProviderTokenUpdates")
            } else {
                connection.accept(request)
            }
        }
        for topic in ["com.example.app", "com.example.new", "com.example.app"] {
            #expect(try await stage.client.send(.alert("Hi").bundleID(topic), to: Samples.token).isAccepted)
        }
        #expect(stage.server.requests.map(\.connection) == [1, 1, 2, 2, 3])
        try await stage.end()
    }

    @Test func `a topic that is refused for good costs the pool one connection`() async throws {
        let stage = try await Stage(configure: {
            $0.pool.minimum = 4
            $0.pool.maximum = 4
        }) { connection, request in
            if request.headers["apns-topic"] == "com.example.other" {
                connection.reject(request, 400, "TopicDisallowed")
            } else {
                connection.accept(request)
            }
        }
        try await stage.client.warmUp()
        // Each has accepted something.
        let warm = try stage.client.send(.alert("Hi"), to: Samples.tokens(400))
        for await result in warm { #expect(result.isAccepted) }
        var refused = 0
        for await result in try stage.client.send(.alert("Hi").bundleID("com.example.other"), to: Samples.tokens(100)) {
            if result.rejection?.reason == .topicDisallowed { refused += 1 }
        }
        #expect(refused == 100)
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(100)) { #expect(result.isAccepted) }
        #expect(stage.server.connections.count == 5)
        try await stage.end()
    }

    @Test func `a new topic is known to new connections, whichever old one refused it`() async throws {
        let stage = try await Stage(configure: {
            $0.pool.minimum = 4
            $0.pool.maximum = 4
        }) { connection, request in
            if connection.number <= 4, request.headers["apns-topic"] == "com.example.new" {
                connection.reject(request, 400, "TopicDisallowed")
            } else {
                connection.accept(request)
            }
        }
        try await stage.client.warmUp()
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(400)) { #expect(result.isAccepted) }
        for await result in try stage.client.send(.alert("Hi").bundleID("com.example.new"), to: Samples.tokens(500)) {
            #expect(result.isAccepted)
        }
        #expect(stage.server.connections.count == 5)
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
