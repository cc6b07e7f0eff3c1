import CarillonAPNs
import Logging
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

/// The end of a client, and of the work that runs on it.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct EndingTests {
    @Test func `a shutdown without draining fails each push exactly once, and reports what is known`() async throws {
        let stage = try await Stage(configure: { $0.pool.maximum = 1 }) { connection, request in
            if request.stream == 1 { connection.accept(request) }
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        let reader = Task {
            var results: [APNsResult<String>] = []
            for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(1500)) { results.append(result) }
            return results
        }
        try await eventually { stage.server.requests.count == 1001 }
        await stage.client.shutDown(drains: false)
        let results = try await reader.value
        #expect(Set(results.map(\.recipient)).count == 1500)
        #expect(results.count == 1500)
        #expect(results.allSatisfy { $0.error?.code == .shutDown })
        #expect(results.count { $0.error?.mayHaveBeenProcessed == true } == 1000)
        try await stage.server.close()
    }

    @Test func `a cancelled service abandons the pushes that a graceful end would wait for`() async throws {
        // The push has more time than the suite.
        let stage = try await Stage(configure: { $0.timeout = .seconds(3600) }) { _, _ in }
        let run = Task { try await stage.client.run() }
        let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { stage.server.requests.count == 1 }
        run.cancel()
        try await run.value
        await #expect(throws: APNsError.self) { try await push.value }
        try await stage.server.close()
    }

    @Test func `a service with a silent host stops at a shutdown`() async throws {
        let listener = try await SilentListener()
        var configuration = APNsClient.Configuration(
            credentials: try Samples.credentials(), environment: .custom(host: "127.0.0.1", port: listener.port))
        // Longer than the time limit of the suite.
        configuration.connectTimeout = .seconds(3600)
        let client = try APNsClient(configuration)
        let group = ServiceGroup(services: [client], logger: Logger(label: "test"))
        let run = Task { try await group.run() }
        try await eventually { listener.accepted > 0 }
        await group.triggerGracefulShutdown()
        try await run.value
        try await listener.close()
    }

    @Test func `waiting for connections ends with its task`() async throws {
        let listener = try await SilentListener()
        let client = try APNsClient(
            .init(credentials: try Samples.credentials(), environment: .custom(host: "127.0.0.1", port: listener.port)))
        let warmUp = Task { try await client.warmUp() }
        try await eventually { listener.accepted > 0 }
        warmUp.cancel()
        let error = await #expect(throws: APNsError.self) { try await warmUp.value }
        #expect(error?.code == .cancelled)
        await client.shutDown(drains: false)
        try await listener.close()
    }

    @Test func `a batch leaves the bound of single pushes alone`() async throws {
        let stage = try await Stage(configure: { $0.queueLimit = 2 }) { connection, request in
            if request.stream == 1 || request.token == Samples.token { connection.accept(request) }
        }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        let batch = Task {
            for await _ in try stage.client.send(.alert("Hi"), to: Samples.tokens(100)) {}
        }
        try await eventually { stage.server.requests.count == 101 }
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        batch.cancel()
        try await batch.value
        try await stage.end()
    }

    @Test func `results of an asynchronous batch that are read twice are sent once`() async throws {
        let stage = try await Stage()
        let tokens = AsyncStream { continuation in
            for token in Samples.tokens(300) { continuation.yield(token) }
            continuation.finish()
        }
        let results = try stage.client.send(.alert("Hi"), to: tokens)
        var read = 0
        for try await _ in results {
            read += 1
            if read == 100 { break }
        }
        for try await _ in results { read += 1 }
        #expect(read == 300)
        #expect(stage.server.requests.count == 300)
        try await stage.end()
    }

    @Test func `an asynchronous batch begins with the first requested result`() async throws {
        let stage = try await Stage()
        let pulled = Mutex(0)
        let tokens = AsyncStream<String>(unfolding: {
            pulled.withLock { $0 += 1 }
            return pulled.withLock { $0 } > 10 ? nil : Samples.token
        })
        let results = try stage.client.send(.alert("Hi"), to: tokens)
        var iterator = results.makeAsyncIterator()
        for _ in 0..<20 { #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted) }
        #expect(pulled.withLock { $0 } == 0)
        #expect(await iterator.next() != nil)
        try await stage.end()
    }

    @Test func `each result of an asynchronous batch goes to one of its two readers`() async throws {
        let stage = try await Stage(configure: { $0.batchWindow = 20 })
        let tokens = AsyncStream { continuation in
            for token in Samples.tokens(2000) { continuation.yield(token) }
            continuation.finish()
        }
        let results = try stage.client.send(.alert("Hi"), to: tokens)
        async let one = Self.count(results)
        async let other = Self.count(results)
        #expect(try await one + other == 2000)
        try await stage.end()
    }

    private static func count(_ results: APNsAsyncResults<AsyncStream<String>>) async throws -> Int {
        var count = 0
        for try await _ in results { count += 1 }
        return count
    }
}
