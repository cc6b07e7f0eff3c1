import CarillonAPNs
import Foundation
import Logging
import NIOHTTP2
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

/// Sending over true TLS and HTTP/2 to a server whose behaviour each test decides.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct SendingTests {
    @Test func `a push contains path, headers and payload, and its answer is returned`() async throws {
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
        let stage = try await Stage { connection, request in
            guard request.stream == 1 else { return connection.accept(request) }
            // Time enough for the pushes that do not wait.
            Task {
                try await Task.sleep(for: .milliseconds(100))
                connection.accept(request)
            }
        }
        var accepted = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(500)) where result.isAccepted {
            accepted += 1
        }
        #expect(accepted == 500)
        let requests = stage.server.requests
        #expect(requests.count == 500)
        // The second arrived when the first was answered.
        #expect(requests.dropFirst().first?.underWay == 1)
        #expect(requests.map(\.connection).allSatisfy { $0 == 1 })
        try await stage.end()
    }

    @Test func `dead tokens do not keep a connection at one stream`() async throws {
        let held = Mutex<[ServerRequest]>([])
        let stage = try await Stage { connection, request in
            if request.stream == 1 { return connection.reject(request, 410, "Unregistered") }
            // Nothing is answered before all others have arrived.
            let all = held.withLock {
                $0.append(request)
                return $0.count == 49 ? $0 : []
            }
            for request in all { connection.reject(request, 410, "Unregistered") }
        }
        var dead = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(50)) {
            if result.rejection?.reason == .unregistered { dead += 1 }
        }
        #expect(dead == 50)
        #expect(stage.server.connections.count == 1)
        try await stage.end()
    }

    @Test func `a first push that the service could not handle does not open the gates`() async throws {
        let highest = Mutex(0)
        let stage = try await Stage { connection, request in
            highest.withLock { $0 = max($0, request.underWay) }
            connection.reject(request, 503, "ServiceUnavailable")
        }
        var rejected = 0
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(50)) {
            if result.rejection?.reason == .serviceUnavailable { rejected += 1 }
        }
        #expect(rejected == 50)
        #expect(highest.withLock { $0 } == 1)
        try await stage.end()
    }

    @Test(arguments: [0, 1, 3000]) func `a batch returns one result for each token`(count: Int) async throws {
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
        let stage = try await Stage(configure: { $0.batchWindow = 16 }) { connection, request in
            if request.token == "ab" { connection.accept(request) }
        }
        #expect(try await stage.client.send(.alert("Hi"), to: "ab").isAccepted)
        let tokens = AsyncStream<String> {
            read.withLock { $0 += 1 }
            return Samples.token
        }
        let reader = Task {
            for await _ in try stage.client.send(.alert("Hi"), to: tokens) {}
        }
        try await eventually { stage.server.requests.count == 17 }
        // Data behind the window would be read by now.
        for _ in 0..<20 { #expect(try await stage.client.send(.alert("Hi"), to: "ab").isAccepted) }
        #expect(read.withLock { $0 } <= 17)
        #expect(stage.server.requests.count == 37)
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

    @Test func `a shutdown completes accepted pushes and refuses later ones`() async throws {
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

    @Test func `the queue has a limit, and reports when it is full`() async throws {
        let stage = try await Stage(configure: { $0.queueLimit = 5 }) { _, _ in }
        let codes = await withTaskGroup(of: APNsError.Code?.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    do throws(APNsError) {
                        _ = try await stage.client.send(.alert("Hi"), to: Samples.token)
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            var codes: [APNsError.Code?] = []
            // Five wait, and the service does not answer them.
            for _ in 0..<3 { codes.append(await group.next() ?? nil) }
            group.cancelAll()
            for await code in group { codes.append(code) }
            return codes
        }
        #expect(codes == Array(repeating: .queueFull, count: 3) + Array(repeating: .cancelled, count: 5))
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

    @Test func `the service group ends the client after its accepted pushes are answered`() async throws {
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

    @Test func `each completed push is reported to the trace`() async throws {
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
        // Held until the maximum number of connections exists, so that ten streams are not enough.
        let held = Mutex<(requests: [(ServerConnection, ServerRequest)], isOver: Bool)>(([], false))
        let stage = try await Stage(
            options,
            configure: {
                $0.pool.maximum = 3
                $0.pool.growsAfter = .milliseconds(10)
            },
            script: { connection, request in
                guard request.stream > 1 else { return connection.accept(request) }
                let ready = held.withLock { held in
                    held.requests.append((connection, request))
                    held.isOver = held.isOver || connection.number == 3
                    guard held.isOver else { return [(ServerConnection, ServerRequest)]() }
                    defer { held.requests = [] }
                    return held.requests
                }
                for (connection, request) in ready { connection.accept(request) }
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
