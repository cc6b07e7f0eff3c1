import NIOHTTP2
import Synchronization
import TestSupport
import Testing

@testable import CarillonAPNs

/// Which refusals end pushes that wait.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct SharedRefusalTests {
    private typealias Held = (connection: ServerConnection, request: ServerRequest)

    private static func certificate() throws -> APNsCredentials {
        let (certificate, key) = try TestCertificates().issue()
        return .certificate(try APNsCertificate(pem: certificate, privateKeyPEM: key))
    }

    /// Returns the reasons of the results, or `accepted`, with their numbers.
    private static func outcomes(
        _ client: APNsClient, _ tokens: [String], _ notification: APNsNotification = .alert("Hi")
    ) async throws -> [String: Int] {
        var outcomes: [String: Int] = [:]
        for await result in try client.send(notification, to: tokens) {
            outcomes[Scene.word(result.result), default: 0] += 1
        }
        return outcomes
    }

    @Test func `a refusal that ends its connection ends the waiting pushes`() async throws {
        let stage = try await Stage { $0.rejectAndGoAway($1, 403, "BadEnvironmentKeyIdInToken") }
        #expect(
            try await Self.outcomes(stage.client, Samples.tokens(20)) == ["BadEnvironmentKeyIdInToken": 20])
        #expect(stage.server.requests.count == 1)
        try await stage.end()
    }

    @Test func `a refusal of old credentials ends nothing that waits for the new ones`() async throws {
        let holds = Mutex(true)
        let held = Mutex<[Held]>([])
        let stage = try await Stage(
            .init(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 1)]), credentials: Self.certificate(),
            configure: { $0.pool.maximum = 1 }
        ) { connection, request in
            if holds.withLock({ $0 }) {
                held.withLock { $0.append((connection, request)) }
            } else {
                connection.accept(request)
            }
        }
        let client = stage.client
        let old = Task { try await client.send(.alert("Hi"), to: "aa") }
        try await eventually { held.withLock { $0.count } == 1 }
        try client.rotate(to: Self.certificate())
        async let new = Self.outcomes(client, ["bb", "cc"])
        try await eventually { held.withLock { $0.count } == 2 }
        for (connection, request) in held.withLock({ $0 }) where request.token == "aa" {
            connection.reject(request, 403, "BadCertificate")
        }
        #expect(try await old.value.rejection?.reason == .badCertificate)
        holds.withLock { $0 = false }
        for (connection, request) in held.withLock({ $0 }) where request.token != "aa" { connection.accept(request) }
        #expect(try await new == ["accepted": 2])
        try await stage.end()
    }

    @Test func `a corrected topic is found although its connection has accepted nothing`() async throws {
        let clock = ManualTime()
        let isCorrected = Mutex(false)
        let known = Mutex<[Int: Bool]>([:])
        let stage = try await Stage(configure: { $0.timeSource = clock.source }) { connection, request in
            // A connection knows the topics that there were at its first push.
            let isKnownNow = isCorrected.withLock { $0 }
            let knows = known.withLock { known -> Bool in
                let knows = known[connection.number] ?? isKnownNow
                known[connection.number] = knows
                return knows
            }
            if knows { connection.accept(request) } else { connection.reject(request, 400, "TopicDisallowed") }
        }
        // The refusal of a fresh connection is final.
        let refused = try await stage.client.send(.alert("Hi"), to: Samples.token)
        #expect(refused.rejection?.reason == .topicDisallowed)
        #expect(stage.server.requests.map(\.connection) == [1])
        isCorrected.withLock { $0 = true }
        clock.advance(.seconds(1))
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(stage.server.requests.map(\.connection) == [1, 1, 2])
        try await stage.end()
    }

    @Test(arguments: ["BadEnvironmentKeyIdInToken", "ExpiredProviderToken"])
    func `a refusal on one connection ends nothing while another one accepts the same token`(reason: String) async throws {
        let clock = ManualTime()
        let isReleased = Mutex(false)
        let held = Mutex<[Held]>([])
        let stage = try await Stage(
            .init(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 5)]),
            configure: {
                $0.timeSource = clock.source
                $0.pool.minimum = 2
                $0.pool.maximum = 2
            }
        ) { connection, request in
            let accepts = isReleased.withLock { $0 } ? connection.number != 2 : request.stream == 1 && connection.number == 1
            guard connection.number < 3, !accepts else { return connection.accept(request) }
            // The first connection has accepted a push and is full; the second one has a single push.
            let refused = held.withLock { held -> Held? in
                held.append((connection, request))
                return held.count == 6 ? held.first { $0.connection.number == 2 } : nil
            }
            if let refused { refused.connection.reject(refused.request, 403, reason) }
        }
        // No newer token helps: the corrections of an hour are used up.
        let key = try APNsTokenKey(pem: Samples.keyPEM, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST")
        let source = ProviderTokenSource.shared(for: key, time: clock.source)
        for _ in 0..<2 {
            let token = try source.current(clock.source.now()).token
            #expect(source.refused(token, clock.source.now()))
            _ = try source.current(clock.source.now())
            clock.advance(.seconds(61))
        }
        try await stage.client.warmUp()
        var outcomes: [String: Int] = [:]
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(50)) {
            let word = Scene.word(result.result)
            outcomes[word, default: 0] += 1
            guard word != "accepted" else { continue }
            isReleased.withLock { $0 = true }
            for (connection, request) in held.withLock({ $0 }) where connection.number == 1 { connection.accept(request) }
        }
        #expect(outcomes == ["accepted": 49, reason: 1])
        // The other connection stays in use.
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(stage.server.requests.last?.connection == 1)
        try await stage.end()
    }

    @Test func `a refusal for too many provider tokens is for the retry policy of each push`() async throws {
        let clock = ManualTime()
        let asked = Mutex(0)
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.retryPolicy = APNsRetryPolicy(patience: .seconds(30)) { _ in
                asked.withLock { $0 += 1 }
                return nil
            }
        }) { $0.reject($1, 429, "TooManyProviderTokenUpdates") }
        #expect(
            try await Self.outcomes(stage.client, Samples.tokens(20)) == ["TooManyProviderTokenUpdates": 20])
        // One push was sent once more, on a fresh connection.
        #expect(stage.server.requests.count == 21)
        #expect(asked.withLock { $0 } == 20)
        try await stage.end()
    }

    @Test func `hundreds of refusals in one turn count once for each topic`() throws {
        var refusals = SharedRefusals()
        #expect(refusals.isEmpty)
        for number in 0..<500 {
            var answer = RawAnswer(status: 400)
            answer.id = "\(number)"
            answer.uniqueID = "\(number)"
            answer.requestID = "\(number)"
            answer.body = [UInt8(number % 250)]
            refusals.refused(answer, topic: number.isMultiple(of: 2) ? "com.example.a" : "com.example.b")
        }
        #expect(refusals.count == 2)
        let shared = try #require(refusals.answer(topic: "com.example.b"))
        #expect(shared.body == [1])
        #expect(shared.id == nil && shared.uniqueID == nil && shared.requestID == nil)
        #expect(refusals.answer(topic: "com.example.c") == nil)
        #expect(refusals.answer(topic: nil) == nil)
        refusals.refused(RawAnswer(status: 403), topic: nil)
        #expect(refusals.count == 3)
        for topic in ["com.example.a", "com.example.c", nil] { #expect(refusals.answer(topic: topic)?.status == 403) }
    }

    @Test func `a refused certificate ends the waiting pushes`() async throws {
        let stage = try await Stage(
            .init(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 1)]), credentials: Self.certificate(),
            configure: { $0.pool.maximum = 1 }
        ) { $0.reject($1, 403, "BadCertificate") }
        #expect(try await Self.outcomes(stage.client, Samples.tokens(20)) == ["BadCertificate": 20])
        #expect(stage.server.requests.count == 1)
        try await stage.end()
    }

    @Test func `a refused topic ends the pushes that wait for the topic, and no others`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: { $0.timeSource = clock.source }) { connection, request in
            if request.headers["apns-topic"] == "com.example.foreign" {
                connection.reject(request, 400, "TopicDisallowed")
            } else {
                connection.accept(request)
            }
        }
        let foreign = APNsNotification.alert("Hi").bundleID("com.example.foreign")
        #expect(try await Self.outcomes(stage.client, Samples.tokens(20), foreign) == ["TopicDisallowed": 20])
        #expect(stage.server.requests.count == 1)
        #expect(try await Self.outcomes(stage.client, Samples.tokens(20)) == ["accepted": 20])
        #expect(stage.server.requests.count == 21)
        try await stage.end()
    }

    @Test func `a push that may have been processed is sent again, although the credentials were refused`() async throws {
        let seen = Mutex<[ServerRequest]>([])
        let stage = try await Stage(
            credentials: Self.certificate(),
            configure: {
                $0.pool.maximum = 1
                $0.retryPolicy.resendsOfUnknownFate = 1
            }
        ) { connection, request in
            let requests = seen.withLock { seen -> [ServerRequest] in
                seen.append(request)
                return seen
            }
            if requests.count > 2 { return connection.accept(request) }
            guard let refused = requests.first(where: { $0.token == "bb" }),
                let lost = requests.first(where: { $0.token == "aa" })
            else { return }
            connection.reject(refused, 403, "BadCertificate", resetting: lost.stream)
        }
        #expect(try await Self.outcomes(stage.client, ["aa", "bb"]) == ["accepted": 1, "BadCertificate": 1])
        #expect(seen.withLock { $0.count { $0.token == "aa" } } == 2)
        try await stage.end()
    }

    @Test func `a refusal of a former token ends nothing that waits for the newer one`() async throws {
        let clock = ManualTime()
        let held = Mutex<[Held]>([])
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.pool.maximum = 1
        }) { connection, request in
            if request.token == "cc" {
                connection.accept(request)
            } else {
                held.withLock { $0.append((connection, request)) }
            }
        }
        let client = stage.client
        let old = Task { try await client.send(.alert("Hi"), to: "aa") }
        try await eventually { held.withLock { $0.count } == 1 }
        // Another token is signed after the wall clock was set. It is for fresh connections.
        clock.setWall(by: 600)
        async let new = Self.outcomes(client, ["bb", "cc"])
        try await eventually { held.withLock { $0.count } == 2 }
        for (connection, request) in held.withLock({ $0 }) where request.token == "aa" {
            connection.reject(request, 403, "BadEnvironmentKeyIdInToken")
        }
        #expect(try await old.value.rejection?.reason?.rawValue == "BadEnvironmentKeyIdInToken")
        for (connection, request) in held.withLock({ $0 }) where request.token == "bb" { connection.accept(request) }
        #expect(try await new == ["accepted": 2])
        #expect(Set(stage.server.requests.compactMap { $0.headers["authorization"] }).count == 2)
        try await stage.end()
    }

    @Test func `a certificate that one connection refuses ends nothing while another connection accepts it`() async throws {
        let held = Mutex<[Held]>([])
        let good = Mutex<Int?>(nil)
        let stage = try await Stage(
            .init(settings: [HTTP2Setting(parameter: .maxConcurrentStreams, value: 1)]), credentials: Self.certificate(),
            configure: {
                $0.pool.minimum = 2
                $0.pool.maximum = 2
            }
        ) { connection, request in
            if request.token == "aa" { good.withLock { $0 = connection.number } }
            // The last push finds both connections full.
            guard ["bb", "cc"].contains(request.token) else { return connection.accept(request) }
            let number = good.withLock { $0 }
            let refused = held.withLock { held -> Held? in
                held.append((connection, request))
                return held.count == 2 ? held.first { $0.connection.number != number } : nil
            }
            if let refused { refused.connection.reject(refused.request, 403, "BadCertificate") }
        }
        let client = stage.client
        try await client.warmUp()
        #expect(try await client.send(.alert("Hi"), to: "aa").isAccepted)
        let number = good.withLock { $0 }
        var outcomes: [String: Int] = [:]
        for await result in try client.send(.alert("Hi"), to: ["bb", "cc", "dd"]) {
            let word = Scene.word(result.result)
            outcomes[word, default: 0] += 1
            guard word != "accepted", outcomes[word] == 1 else { continue }
            for (connection, request) in held.withLock({ $0 }) where connection.number == number {
                connection.accept(request)
            }
        }
        #expect(outcomes == ["accepted": 2, "BadCertificate": 1])
        try await stage.end()
    }

    @Test func `connections that refuse pushes which another one accepts are not replaced endlessly`() async throws {
        let clock = ManualTime()
        let good = Mutex<Int?>(nil)
        let isHeld = Mutex(false)
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.pool.minimum = 2
            $0.pool.maximum = 2
        }) { connection, request in
            let isGood = good.withLock { good -> Bool in
                good = good ?? connection.number
                return good == connection.number
            }
            guard isGood else { return connection.reject(request, 403, "BadEnvironmentKeyIdInToken") }
            // The connection is busier than any other, so that further pushes go to another connection.
            if request.token == "bb" { isHeld.withLock { $0 = true } } else { connection.accept(request) }
        }
        let client = stage.client
        try await client.warmUp()
        #expect(try await client.send(.alert("Hi"), to: "aa").isAccepted)
        let push = Task { try await client.send(.alert("Hi"), to: "bb") }
        try await eventually { isHeld.withLock { $0 } }
        var refused = 0
        for _ in 0..<1000 {
            let response = try await client.send(.alert("Hi"), to: "cc")
            if !response.isAccepted { refused += 1 }
        }
        // The second connection and four in its place; the clock does not advance.
        #expect((1...5).contains(refused))
        #expect(stage.server.connections.count <= 6)
        push.cancel()
        _ = await push.result
        try await stage.end()
    }
}
