import CarillonAPNs
import NIOHTTP2
import Synchronization
import TestSupport
import Testing

/// Pushes that fail: each ends in time, and reports whether it may have been processed.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct AbandonedPushTests {
    @Test func `a service that refuses without end does not outlast the deadline`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.timeout = .seconds(4)
        }) { connection, request in
            connection.reset(request.stream, .refusedStream)
        }
        let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { stage.server.requests.count > 1 }
        clock.advance(.milliseconds(4100))
        let error = await #expect(throws: APNsError.self) { try await push.value }
        #expect(error?.code == .timedOut)
        #expect(stage.server.requests.count > 1)
        try await stage.end()
    }

    /// A server that accepts pushes to "ab", and a client with a time limit of three seconds for pushes.
    private static func stage(_ time: APNsTimeSource, _ script: @escaping ScriptedServer.Script) async throws -> Stage {
        try await Stage(configure: {
            $0.timeSource = time
            $0.timeout = .seconds(3)
        }) { connection, request in
            if request.token == "ab" { connection.accept(request) } else { script(connection, request) }
        }
    }

    /// Sends a push whose answer does not end, and returns its response.
    ///
    /// - Parameter timeOut: Ends the time of the push. The client has read the status by then.
    private func unended(_ stage: Stage, timeOut: () -> Void) async throws -> APNsResponse {
        // The first acceptance lets several pushes be under way.
        #expect(try await stage.client.send(.alert("Hi"), to: "ab").isAccepted)
        let push = Task { try await stage.client.send(.alert("Hi"), to: Samples.token) }
        try await eventually { stage.server.requests.contains { $0.token == Samples.token } }
        // When a later push is answered, the answer before it was read.
        #expect(try await stage.client.send(.alert("Hi"), to: "ab").isAccepted)
        timeOut()
        return try await push.value
    }

    @Test(arguments: [200, 410]) func `a push with a status is answered, even if the response never ends`(status: Int)
        async throws
    {
        let clock = ManualTime()
        let stage = try await Self.stage(clock.source) { connection, request in
            connection.answer(request.stream, status, endsStream: false)
        }
        let response = try await unended(stage) { clock.advance(.milliseconds(3100)) }
        #expect(response.status == status)
        #expect(response.isAccepted == (status == 200))
        #expect(stage.server.requests.count { $0.token == Samples.token } == 1)
        try await stage.end()
    }

    @Test func `a request that is reset repeatedly before it was sent completely is abandoned`() async throws {
        var options = ScriptedServer.Options()
        options.settings.append(HTTP2Setting(parameter: .initialWindowSize, value: 0))
        let attempts = Mutex(0)
        options.onHeaders = { connection, request in
            attempts.withLock { $0 += 1 }
            connection.reset(request.stream, .internalError)
        }
        let stage = try await Stage(options)
        let error = await #expect(throws: APNsError.self) {
            try await stage.client.send(.alert("Hi"), to: Samples.token)
        }
        #expect(error?.code == .connectionLost)
        #expect(error?.mayHaveBeenProcessed == false)
        #expect(attempts.withLock { $0 } == 4)
        try await stage.end()
    }

    /// Sends the given number of pushes that are not answered, and cancels them. Returns the time until their end.
    private func cancel(_ count: Int) async throws -> Duration {
        let stage = try await Stage(configure: { $0.timeout = .seconds(240) }) { _, _ in }
        try await stage.client.warmUp()
        let (outcomes, duration) = await withTaskGroup(of: APNsError.Code?.self) { group in
            for token in Samples.tokens(count) {
                group.addTask {
                    do throws(APNsError) {
                        _ = try await stage.client.send(.alert("Hi"), to: token)
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            while stage.server.requests.isEmpty { await Task.yield() }
            let start = ContinuousClock.now
            group.cancelAll()
            var outcomes: [APNsError.Code?: Int] = [:]
            for await code in group { outcomes[code, default: 0] += 1 }
            return (outcomes, ContinuousClock.now - start)
        }
        #expect(outcomes == [.cancelled: count])
        try await stage.end()
        return duration
    }

    @Test func `tens of thousands of cancelled pushes are taken back at once`() async throws {
        let few = try await cancel(4000)
        let many = try await cancel(40_000)
        // On a slow machine the time grows with their number: ten times as many, and four times that for other processes.
        #expect(many < .seconds(15) || many < few * 40, "\(few), \(many)")
    }

    @Test func `a draining shutdown does not wait for pushes that the policy would repeat later`() async throws {
        let asked = Mutex(false)
        let stage = try await Stage(configure: {
            $0.retryPolicy = APNsRetryPolicy(patience: .seconds(7200)) { _ in
                asked.withLock { $0 = true }
                return .seconds(3600)
            }
        }) { connection, request in
            connection.reject(request, 429, "TooManyRequests")
        }
        async let response = stage.client.send(.alert("Hi"), to: Samples.token)
        try await eventually { asked.withLock { $0 } }
        await stage.client.shutDown(drains: true)
        #expect(try await response.rejection?.reason == .tooManyRequests)
        try await stage.end()
    }

    @Test func `a date in retry-after is read by the client's clock, though the answer never ends`() async throws {
        let passed = Mutex(Duration.zero)
        let time = APNsTimeSource(elapsed: { passed.withLock { $0 } }, secondsSince1970: { 1_000_000_000 })
        let stage = try await Self.stage(time) { connection, request in
            connection.answer(
                request.stream, 429, [("retry-after", "Sun, 09 Sep 2001 01:48:10 GMT")], endsStream: false)
        }
        let response = try await unended(stage) { passed.withLock { $0 = .milliseconds(3100) } }
        #expect(response.status == 429)
        #expect(response.rejection?.retryAfter == .seconds(90))
        try await stage.end()
    }
}
