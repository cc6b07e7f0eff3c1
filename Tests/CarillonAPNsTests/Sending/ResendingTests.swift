import CarillonAPNs
import NIOHTTP2
import Synchronization
import TestSupport
import Testing

/// The pushes that are sent again, the others, and their results, with the behaviour of real connections.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ResendingTests {
    @Test func `refused streams are sent again, and the caller sees nothing of it`() async throws {
        let refused = Mutex<Set<String>>([])
        let stage = try await Stage { connection, request in
            let isFirst = refused.withLock { $0.insert(request.token).inserted }
            if isFirst, Samples.number(request.token) % 3 == 1 {
                connection.reset(request.stream, .refusedStream)
            } else {
                connection.accept(request)
            }
        }
        var accepted = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(600)) where result.isAccepted {
            accepted += 1
        }
        #expect(accepted == 600)
        #expect(stage.server.requests.count == 800)
        try await stage.end()
    }

    @Test func `after GOAWAY the streams above the last are sent elsewhere, and the others are answered`() async throws {
        let stage = try await Stage(configure: { $0.pool.maximum = 1 }) { connection, request in
            guard connection.number == 1, request.stream > 1 else { return connection.accept(request) }
            // Stream 21 is the last that counts; those up to it are answered after the GOAWAY.
            if request.stream == 61 {
                connection.goAway(last: 21, reason: "BadDeviceToken")
                for stream in stride(from: 3, through: 21, by: 2) { connection.answer(stream, 200) }
            }
        }
        var perToken: [String: Int] = [:]
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(100)) {
            #expect(result.isAccepted, "\(result.result)")
            perToken[result.recipient, default: 0] += 1
        }
        #expect(perToken.count == 100)
        #expect(perToken.values.allSatisfy { $0 == 1 })
        let answeredTwice = Dictionary(
            grouping: stage.server.requests.filter { $0.connection == 2 || $0.stream <= 21 }, by: \.token)
        #expect(answeredTwice.values.allSatisfy { $0.count == 1 })
        try await stage.end()
        #expect(stage.server.faults.isEmpty)
    }

    @Test func `a broken connection leaves the result of its pushes unknown, and reports it`() async throws {
        let stage = try await Stage(configure: { $0.pool.maximum = 1 }) { connection, request in
            if connection.number == 1, request.stream == 11 { return connection.close() }
            if connection.number == 1, request.stream > 1 { return }
            connection.accept(request)
        }
        var lost = 0
        var accepted = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(200)) {
            if result.isAccepted { accepted += 1 }
            if let error = result.error {
                #expect(error.code == .connectionLost)
                #expect(error.mayHaveBeenProcessed)
                lost += 1
            }
        }
        #expect(lost + accepted == 200)
        #expect(lost > 0)
        #expect(accepted > 0)
        // No push with an unknown result was sent a second time.
        let tokens = stage.server.requests.map(\.token)
        #expect(Set(tokens).count == tokens.count)
        try await stage.end()
    }

    @Test func `by policy a push of unknown fate is sent again, with the same ID`() async throws {
        let stage = try await Stage(configure: { $0.retryPolicy.resendsOfUnknownFate = 1 }) { connection, request in
            if connection.number == 1 { connection.close() } else { connection.accept(request) }
        }
        let response = try await stage.client.send(.alert("Hi"), to: Samples.token)
        #expect(response.isAccepted)
        let ids = stage.server.requests.compactMap { $0.headers["apns-id"] }
        #expect(ids.count == 2)
        #expect(Set(ids).count == 1)
        try await stage.end()
    }

    @Test func `200 without an ID is no answer, and by policy the push is sent again with the same ID`() async throws {
        let stage = try await Stage(configure: { $0.retryPolicy.resendsOfUnknownFate = 1 }) { connection, request in
            connection.answer(request.stream, 200, body: "<html>Welcome</html>", hasID: request.stream != 1)
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        let ids = stage.server.requests.compactMap { $0.headers["apns-id"] }
        #expect(ids.count == 2)
        #expect(Set(ids).count == 1)
        try await stage.end()
        let once = try await Stage { connection, request in connection.answer(request.stream, 200, hasID: false) }
        let error = await #expect(throws: APNsError.self) {
            try await once.client.send(.alert("Hi"), to: Samples.token)
        }
        #expect(error?.code == .answerInvalid)
        #expect(error?.mayHaveBeenProcessed == true)
        #expect(once.server.requests.count == 1)
        var codes: [APNsError.Code?] = []
        for await result in try once.client.send(.alert("Hi"), to: Samples.tokens(3)) { codes.append(result.error?.code) }
        #expect(codes == [.answerInvalid, .answerInvalid, .answerInvalid])
        try await once.end()
    }

    @Test func `a push that was lost once is never reported as unprocessed`() async throws {
        let certificates = try TestCertificates()
        let strange = try TestCertificates()
        let first = try await ScriptedServer(tls: certificates.serverContext()) { connection, _ in connection.close() }
        var configuration = APNsClient.Configuration(
            credentials: try Samples.credentials(), bundleID: "com.example.app",
            environment: .custom(host: "localhost", port: first.port))
        configuration.trustRoots = certificates.authorityPEM
        configuration.retryPolicy.resendsOfUnknownFate = 5
        let client = try APNsClient(configuration)
        let push = Task { try await client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { !first.requests.isEmpty }
        // The host comes back with an untrusted certificate.
        try await first.close()
        let second = try await ScriptedServer(tls: strange.serverContext(), port: first.port) { $0.accept($1) }
        let error = await #expect(throws: APNsError.self) { try await push.value }
        #expect(error?.mayHaveBeenProcessed == true)
        await client.shutDown(drains: false)
        try await second.close()
    }

    @Test func `a service that does not answer lets the push time out, and is reset`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.timeout = .seconds(4)
        }) { connection, request in
            if Samples.number(request.token) != 1 { connection.accept(request) }
        }
        try await stage.client.warmUp()
        let tokens = Samples.tokens(3)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[0]).isAccepted)
        let push = Task { try await stage.client.send(.alert("Hi"), to: tokens[1]) }
        try await eventually { stage.server.requests.count == 2 }
        clock.advance(.milliseconds(4100))
        let error = await #expect(throws: APNsError.self) { try await push.value }
        #expect(error?.code == .timedOut)
        #expect(error?.mayHaveBeenProcessed == true)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[2]).isAccepted)
        try await eventually { stage.server.connections.first?.resets == [3] }
        #expect(stage.server.connections.count == 1)
        try await stage.end()
    }

    @Test func `a service that stays silent is left for a new connection`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.timeout = .seconds(4)
        }) { connection, request in
            if connection.number > 1 || request.stream == 1 { connection.accept(request) }
        }
        try await stage.client.warmUp()
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        for count in 2...4 {
            let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
            try await eventually { stage.server.requests.count == count }
            clock.advance(.milliseconds(4100))
            await #expect(throws: APNsError.self) { try await push.value }
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(stage.server.connections.count == 2)
        try await stage.end()
    }

    @Test func `an answer before the body ends that push alone`() async throws {
        // The window lets no body through at first.
        var options = ScriptedServer.Options()
        options.settings.append(HTTP2Setting(parameter: .initialWindowSize, value: 0))
        options.onHeaders = { connection, request in
            if Samples.number(request.token) == 1 {
                connection.reject(request, 400, "BadDeviceToken")
            } else {
                connection.openWindow(request.stream, by: 1000)
            }
        }
        let stage = try await Stage(options)
        let tokens = Samples.tokens(4)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[0]).isAccepted)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[1]).rejection?.reason == .badDeviceToken)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[2]).isAccepted)
        try await stage.end()
        #expect(stage.server.faults.isEmpty)
    }

    @Test func `tiny windows slow pushes down and stop none`() async throws {
        var options = ScriptedServer.Options()
        options.settings.append(HTTP2Setting(parameter: .initialWindowSize, value: 50))
        let stage = try await Stage(options)
        let notification = APNsNotification.alert(title: String(repeating: "long ", count: 300))
        var accepted = 0
        for await result in try stage.client.send(notification, to: Samples.tokens(100)) where result.isAccepted {
            accepted += 1
        }
        #expect(accepted == 100)
        #expect(stage.server.requests.allSatisfy { $0.body == notification.jsonString })
        try await stage.end()
        #expect(stage.server.faults.isEmpty)
    }

    @Test func `a limit that falls and rises is kept, and nothing is lost`() async throws {
        let stage = try await Stage { connection, request in
            switch request.stream {
            case 101: connection.settings([HTTP2Setting(parameter: .maxConcurrentStreams, value: 1)])
            case 301: connection.settings([HTTP2Setting(parameter: .maxConcurrentStreams, value: 1000)])
            default: break
            }
            connection.accept(request)
        }
        var accepted = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(1000)) where result.isAccepted {
            accepted += 1
        }
        #expect(accepted == 1000)
        try await stage.end()
        // NIO's own state machine would have noted a stream above the limit.
        #expect(stage.server.faults.isEmpty)
    }

    @Test func `too many requests are sent again after the delay, on the injected clock`() async throws {
        let clock = ManualTime()
        let asked = Mutex(false)
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.retryPolicy.delay = { attempt in
                asked.withLock { $0 = true }
                return APNsRetryPolicy.recommendedDelay(attempt)
            }
        }) { connection, request in
            request.stream == 1 ? connection.reject(request, 429, "TooManyRequests") : connection.accept(request)
        }
        let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { asked.withLock { $0 } }
        clock.advance(.milliseconds(999))
        // Another one does not wait, and when it was answered the first would have been sent.
        #expect(try await stage.client.send(.alert("Hi"), to: "ab").isAccepted)
        #expect(stage.server.requests.count == 2)
        clock.advance(.milliseconds(101))
        #expect(try await push.value.isAccepted)
        #expect(stage.server.requests.count == 3)
        try await stage.end()
    }

    @Test func `the wait before a push is sent again is not taken from its time`() async throws {
        let clock = ManualTime()
        let asked = Mutex(false)
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.timeout = .seconds(3)
            $0.retryPolicy = APNsRetryPolicy(patience: .seconds(100)) { _ in
                asked.withLock { $0 = true }
                return .seconds(30)
            }
        }) { connection, request in
            request.stream == 1 ? connection.reject(request, 429, "TooManyRequests") : connection.accept(request)
        }
        let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { asked.withLock { $0 } }
        // The wait with the most that is added to it.
        clock.advance(.seconds(33))
        #expect(try await push.value.isAccepted)
        #expect(stage.server.requests.count == 2)
        try await stage.end()
    }

    @Test func `trouble of the service is the answer, because fifteen minutes exceed the patience`() async throws {
        let stage = try await Stage { $0.reject($1, 503, "ServiceUnavailable") }
        let response = try await stage.client.send(.alert("Hi"), to: Samples.token)
        #expect(response.rejection?.kind == .tryLater)
        #expect(stage.server.requests.count == 1)
        try await stage.end()
    }

    @Test func `a date in retry-after is read by the client's time source`() async throws {
        // The clock of the client is years away from the clock of the machine.
        let clock = ManualTime(wall: 1_000_000_000)
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.retryPolicy = .never
        }) { connection, request in
            connection.answer(
                request.stream, 429, [("retry-after", "Sun, 09 Sep 2001 01:48:10 GMT")],
                body: "{\"reason\":\"TooManyRequests\"}")
        }
        let response = try await stage.client.send(.alert("Hi"), to: Samples.token)
        #expect(response.rejection?.retryAfter == .seconds(90))
        try await stage.end()
    }
}
