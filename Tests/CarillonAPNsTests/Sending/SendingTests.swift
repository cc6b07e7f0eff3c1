import CarillonAPNs
import Foundation
import Logging
import NIOHTTP2
import ServiceLifecycle
import Synchronization
import Testing

/// Sending over true TLS and HTTP/2 to a server that does what each test says.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct SendingTests {
    @Test func `a push carries path, headers and payload, and its answer comes back`() async throws {
        let stage = try await Stage { connection, request in
            connection.answer(request.stream, 200, [("apns-id", "the-id"), ("apns-unique-id", "the-unique-id")])
        }
        let notification = APNsNotification.alert(title: "Hello").id(
            try #require(UUID(uuidString: "11111111-2222-3333-4444-55555555555A"))
        ).collapseID("one two").expiration(.immediately)
        let response = try await stage.client.send(notification, to: Samples.token)
        #expect(response.isAccepted)
        #expect(response.status == 200)
        #expect(response.id == "the-id")
        #expect(response.uniqueID == "the-unique-id")
        let request = try #require(stage.server.requests.first)
        #expect(request.headers[":method"] == "POST")
        #expect(request.headers[":scheme"] == "https")
        #expect(request.headers[":path"] == "/3/device/" + Samples.token)
        #expect(request.headers[":authority"] == "localhost:\(stage.server.port)")
        #expect(request.headers["apns-topic"] == "com.example.app")
        #expect(request.headers["apns-push-type"] == "alert")
        #expect(request.headers["apns-priority"] == "10")
        #expect(request.headers["apns-expiration"] == "0")
        #expect(request.headers["apns-collapse-id"] == "one two")
        #expect(request.headers["apns-id"] == "11111111-2222-3333-4444-55555555555a")
        #expect(request.headers["authorization"]?.hasPrefix("bearer ey") == true)
        #expect(request.body == notification.jsonString)
        try await stage.end()
        #expect(stage.server.faults.isEmpty)
    }

    @Test func `until the first acceptance one push is under way, of five hundred`() async throws {
        let stage = try await Stage()
        var accepted = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(500)) where result.isAccepted {
            accepted += 1
        }
        #expect(accepted == 500)
        let requests = stage.server.requests
        #expect(requests.count == 500)
        #expect(requests.first?.underWay == 1)
        // The second came when the first was answered.
        #expect(requests.map(\.connection).allSatisfy { $0 == 1 })
        try await stage.end()
    }

    @Test func `a rejected first push does not open the gates`() async throws {
        let highest = Mutex(0)
        let stage = try await Stage { connection, request in
            highest.withLock { $0 = max($0, request.underWay) }
            connection.reject(request, 400, "BadDeviceToken")
        }
        var rejected = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(50)) {
            if result.rejection?.reason == .badDeviceToken { rejected += 1 }
        }
        #expect(rejected == 50)
        #expect(highest.withLock { $0 } == 1)
        try await stage.end()
    }

    @Test(arguments: [0, 1, 3000]) func `a batch gives one result for each token`(count: Int) async throws {
        let stage = try await Stage()
        var seen = [Int](repeating: 0, count: count)
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(count)) {
            if result.isAccepted { seen[Samples.number(result.recipient)] += 1 }
        }
        #expect(seen.allSatisfy { $0 == 1 })
        #expect(stage.server.requests.count == count)
        try await stage.end()
        #expect(stage.server.faults.isEmpty)
    }

    @Test func `a batch reads its tokens from an asynchronous sequence, and passes its error on`() async throws {
        struct Broken: Error {}
        let stage = try await Stage()
        let tokens = AsyncThrowingStream<String, any Error> { continuation in
            for token in Samples.tokens(300) { continuation.yield(token) }
            continuation.finish(throwing: Broken())
        }
        var accepted = 0
        await #expect(throws: Broken.self) {
            for try await result in try stage.client.send(.alert("Hi"), to: tokens) where result.isAccepted { accepted += 1 }
        }
        #expect(accepted == 300)
        try await stage.end()
    }

    @Test func `an asynchronous sequence is read no further than the window`() async throws {
        let read = Mutex(0)
        let stage = try await Stage(configure: { $0.batchWindow = 16 }) { _, _ in }
        let tokens = AsyncStream<String> {
            read.withLock { $0 += 1 }
            return Samples.token
        }
        let reader = Task {
            for await _ in try stage.client.send(.alert("Hi"), to: tokens) {}
        }
        try await eventually { stage.server.requests.count == 1 }
        try await Task.sleep(for: .milliseconds(100))
        #expect(read.withLock { $0 } <= 17)
        reader.cancel()
        try await reader.value
        try await stage.end()
    }

    @Test func `a malformed token has its result and harms no other`() async throws {
        let stage = try await Stage()
        var results: [String: APNsError.Code?] = [:]
        for await result in try stage.client.send(.alert("Hi"), to: ["xyz", "", Samples.token, "abc", "AB"]) {
            results.updateValue(result.error?.code, forKey: result.recipient)
        }
        #expect(results.count == 5)
        #expect(results["xyz"] == .tokenInvalid)
        #expect(results[""] == .tokenInvalid)
        #expect(results["abc"] == .tokenInvalid)
        #expect(results[Samples.token] == .some(nil))
        #expect(results["AB"] == .some(nil))
        try await stage.end()
    }

    @Test func `records choose their environment`() async throws {
        struct Install: APNsRecipient {
            let deviceToken: String
            let environment: APNsEnvironment?
        }
        let sandbox = try await Stage()
        let other = try await ScriptedServer(tls: sandbox.certificates.serverContext()) { $0.accept($1) }
        let installs = (0..<20).map { number in
            Install(
                deviceToken: Samples.token,
                environment: number.isMultiple(of: 2) ? nil : .custom(host: "localhost", port: other.port))
        }
        var accepted = 0
        for await result in try sandbox.client.send(.alert("Hi"), to: installs) where result.isAccepted { accepted += 1 }
        #expect(accepted == 20)
        #expect(sandbox.server.requests.count == 10)
        #expect(other.requests.count == 10)
        try await sandbox.end()
        try await other.close()
    }

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

    @Test func `a connection that breaks leaves the fate of its pushes open, and says so`() async throws {
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
        // Nothing whose fate is open was sent a second time.
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

    @Test func `what was lost once is never called unprocessed, however it ends`() async throws {
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
        // The host comes back with a certificate that nobody trusts.
        try await first.close()
        let second = try await ScriptedServer(tls: strange.serverContext(), port: first.port) { $0.accept($1) }
        let error = await #expect(throws: APNsError.self) { try await push.value }
        #expect(error?.mayHaveBeenProcessed == true)
        await client.shutDown(drains: false)
        try await second.close()
    }

    @Test func `a silent service lets the push time out, and is reset`() async throws {
        let stage = try await Stage(configure: { $0.timeout = .seconds(2) }) { connection, request in
            if Samples.number(request.token) != 1 { connection.accept(request) }
        }
        try await stage.client.warmUp()
        let tokens = Samples.tokens(3)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[0]).isAccepted)
        let error = await #expect(throws: APNsError.self) {
            try await stage.client.send(.alert("Hi"), to: tokens[1])
        }
        #expect(error?.code == .timedOut)
        #expect(error?.mayHaveBeenProcessed == true)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[2]).isAccepted)
        try await eventually { stage.server.connections.first?.resets == [3] }
        #expect(stage.server.connections.count == 1)
        try await stage.end()
    }

    @Test func `a service that stays silent is left for a new connection`() async throws {
        let stage = try await Stage(configure: { $0.timeout = .seconds(2) }) { connection, request in
            if connection.number > 1 || request.stream == 1 { connection.accept(request) }
        }
        try await stage.client.warmUp()
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        for _ in 0..<3 {
            await #expect(throws: APNsError.self) { try await stage.client.send(.alert("Hi"), to: Samples.token) }
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

    @Test func `too many requests are sent again after the delay, on the injected clock`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: { $0.timeSource = clock.source }) { connection, request in
            request.stream == 1 ? connection.reject(request, 429, "TooManyRequests") : connection.accept(request)
        }
        let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { stage.server.requests.count == 1 }
        try await Task.sleep(for: .milliseconds(100))
        #expect(stage.server.requests.count == 1)
        // The rejection may still be on its way: the clock goes on until the push does.
        try await eventually {
            clock.advance(.seconds(1))
            return stage.server.requests.count == 2
        }
        #expect(try await push.value.isAccepted)
        try await stage.end()
    }

    @Test func `trouble of the service is the answer, because fifteen minutes exceed the patience`() async throws {
        let stage = try await Stage { $0.reject($1, 503, "ServiceUnavailable") }
        let response = try await stage.client.send(.alert("Hi"), to: Samples.token)
        #expect(response.rejection?.kind == .tryLater)
        #expect(stage.server.requests.count == 1)
        try await stage.end()
    }

    @Test func `a cancelled task gets its push back and frees its stream`() async throws {
        let stage = try await Stage { connection, request in
            if Samples.number(request.token) != 1 { connection.accept(request) }
        }
        let tokens = Samples.tokens(3)
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[0]).isAccepted)
        let push = Task { try await stage.client.send(.alert("Hi"), to: tokens[1]) }
        try await eventually { stage.server.requests.count == 2 }
        push.cancel()
        let error = await #expect(throws: APNsError.self) { try await push.value }
        #expect(error?.code == .cancelled)
        #expect(error?.mayHaveBeenProcessed == true)
        try await eventually { stage.server.connections.first?.resets == [3] }
        #expect(try await stage.client.send(.alert("Hi"), to: tokens[2]).isAccepted)
        try await stage.end()
    }

    @Test func `shutting down answers what was taken and refuses what comes after`() async throws {
        let held = Mutex<[(ServerConnection, ServerRequest)]>([])
        let stage = try await Stage { connection, request in
            if request.token != "ab" {
                connection.accept(request)
            } else {
                held.withLock { $0.append((connection, request)) }
            }
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        let push = Task { try await stage.client.send(.alert("Hi"), to: "ab") }
        try await eventually { held.withLock { $0.count } == 1 }
        let end = Task { await stage.client.shutDown() }
        try await eventually {
            do {
                _ = try await stage.client.send(.alert("Hi"), to: Samples.token)
                return false
            } catch let error as APNsError {
                return error.code == .shutDown
            }
        }
        for (connection, request) in held.withLock({ $0 }) { connection.accept(request) }
        #expect(try await push.value.isAccepted)
        await end.value
        try await stage.server.close()
    }

    @Test func `the queue has a bound, and says when it is full`() async throws {
        let stage = try await Stage(configure: { $0.queueLimit = 5 }) { _, _ in }
        let pushes = (0..<5).map { _ in Task { try await stage.client.send(.alert("Hi"), to: Samples.token) } }
        try await eventually { stage.server.requests.count == 1 }
        try await eventually {
            let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
            try await Task.sleep(for: .milliseconds(20))
            push.cancel()
            do {
                _ = try await push.value
                return false
            } catch let error as APNsError {
                return error.code == .queueFull
            }
        }
        for push in pushes { push.cancel() }
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

    @Test func `custom values are encoded once for all tokens`() async throws {
        final class Tally: Sendable { let count = Mutex(0) }
        struct Value: Encodable, Sendable {
            let tally: Tally
            func encode(to encoder: any Encoder) throws {
                tally.count.withLock { $0 += 1 }
                var container = encoder.singleValueContainer()
                try container.encode("value")
            }
        }
        let stage = try await Stage()
        let tally = Tally()
        let notification = APNsNotification.alert("Hi").custom("key", Value(tally: tally))
        for await result in try stage.client.send(notification, to: Samples.tokens(200)) { #expect(result.isAccepted) }
        #expect(tally.count.withLock { $0 } == 1)
        #expect(stage.server.requests.allSatisfy { $0.body == notification.jsonString })
        try await stage.end()
    }

    @Test func `a token may have any length that fits into a request`() async throws {
        let stage = try await Stage()
        for digits in [2, 64, 200, 4096] {
            let token = String(repeating: "ab", count: digits / 2)
            #expect(try await stage.client.send(.alert("Hi"), to: token).isAccepted)
            #expect(stage.server.requests.last?.token == token)
        }
        for bad in ["", "a", "xy", "ab cd", String(repeating: "ab", count: 2049)] {
            let error = await #expect(throws: APNsError.self) { try await stage.client.send(.alert("Hi"), to: bad) }
            #expect(error?.code == .tokenInvalid)
        }
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

    @Test func `the service group ends the client when what it took is answered`() async throws {
        let stage = try await Stage()
        let group = ServiceGroup(services: [stage.client], logger: Logger(label: "test"))
        let run = Task { try await group.run() }
        try await eventually { stage.server.connections.count == 1 }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        await group.triggerGracefulShutdown()
        try await run.value
        let error = await #expect(throws: APNsError.self) {
            try await stage.client.send(.alert("Hi"), to: Samples.token)
        }
        #expect(error?.code == .shutDown)
        try await stage.server.close()
    }

    @Test func `each push that is over is told to the trace`() async throws {
        let outcomes = Mutex<[String]>([])
        let stage = try await Stage(configure: { $0.trace = { trace in outcomes.withLock { $0.append(trace.outcome) } } }) {
            $1.stream == 1 ? $0.accept($1) : $0.reject($1, 410, "Unregistered")
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).rejection?.kind == .deadToken)
        #expect(outcomes.withLock { $0 } == ["accepted", "Unregistered"])
        try await stage.end()
    }

    @Test func `the pool grows when its connections are full, up to its maximum`() async throws {
        var options = ScriptedServer.Options()
        options.settings = [HTTP2Setting(parameter: .maxConcurrentStreams, value: 10)]
        let stage = try await Stage(
            options,
            configure: {
                $0.pool.maximum = 3
                $0.pool.growsAfter = .milliseconds(10)
            },
            script: { connection, request in
                guard request.stream > 1 else { return connection.accept(request) }
                // Slow enough that ten streams are not enough.
                Task {
                    try await Task.sleep(for: .milliseconds(20))
                    connection.accept(request)
                }
            })
        var accepted = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(1000)) where result.isAccepted {
            accepted += 1
        }
        #expect(accepted == 1000)
        #expect(stage.server.connections.count == 3)
        try await stage.end()
        #expect(stage.server.faults.isEmpty)
    }

    @Test func `warming up opens the minimum`() async throws {
        let stage = try await Stage(configure: { $0.pool.minimum = 3 })
        try await stage.client.warmUp()
        #expect(stage.server.connections.count == 3)
        #expect(stage.server.requests.isEmpty)
        try await stage.end()
    }
}

/// A clock that stands until a test moves it.
final class ManualTime: Sendable {
    private let elapsed = Mutex(Duration.seconds(1000))

    func advance(_ duration: Duration) { elapsed.withLock { $0 += duration } }

    var source: APNsTimeSource {
        APNsTimeSource(
            elapsed: { self.elapsed.withLock { $0 } },
            secondsSince1970: { 1_780_000_000 + self.elapsed.withLock { $0 }.components.seconds })
    }
}
