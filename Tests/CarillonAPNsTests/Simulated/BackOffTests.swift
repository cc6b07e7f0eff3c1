import CarillonAPNsSimulator
import Synchronization
import TestSupport
import Testing

@testable import CarillonAPNs

/// A service in trouble is not stormed, and a connection that ends for a good reason is replaced.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct BackOffTests {
    @Test func `a service that disconnects at once is reported, and is not called in a loop`() async throws {
        var options = ScriptedServer.Options()
        options.onConnect = { $0.goAway(last: 0, reason: "BadCertificate") }
        let clock = ManualTime()
        let stage = try await Stage(options, configure: { $0.timeSource = clock.source })
        let error = await #expect(throws: APNsError.self) { try await stage.client.warmUp() }
        #expect(error?.code == .connectionFailed)
        #expect(error?.message.contains("BadCertificate") == true, "\(error?.message ?? "")")
        // While the clock does not advance, there is no other.
        for attempt in 1...3 {
            // It closes when it has counted the failure.
            try await eventually { stage.server.connections.last?.isClosed == true }
            #expect(stage.server.connections.count == attempt)
            clock.advance(.seconds(4))
            try await eventually { stage.server.connections.count == attempt + 1 }
        }
        try await stage.end()
    }

    @Test(arguments: [APNsSimulator.Reason.expiredProviderToken, .tooManyProviderTokenUpdates])
    func `a thousand refused tokens cost no storm of connections and one signature`(
        reason: APNsSimulator.Reason
    ) async throws {
        let scene = try await Scene(simulator: { $0.faults = [.init(.reject(reason), skip: 1)] })
        #expect(try await scene.outcomes(Samples.tokens(1001)) == ["accepted": 1, reason.rawValue: 1000])
        #expect(scene.simulator.connections.count <= 2)
        #expect(scene.simulator.connections.allSatisfy { $0.providerTokens <= 1 })
        await scene.end()
    }

    @Test func `a service that answers once and leaves is not called in a loop either`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.timeout = .milliseconds(300)
            $0.pool.maximum = 1
        }) { connection, request in
            connection.acceptAndGoAway(request)
        }
        // The first, and four for it and its like.
        for _ in 0..<5 { #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted) }
        try await eventually { stage.server.connections.allSatisfy(\.isClosed) }
        #expect(stage.server.connections.count == 5)
        clock.advance(.seconds(1))
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(stage.server.connections.count == 6)
        // A push that finds no connection in its time receives the reason.
        let late = Mutex<APNsError?>(nil)
        let push = Task {
            do throws(APNsError) {
                _ = try await stage.client.send(.alert("Hi"), to: Samples.token)
            } catch {
                late.withLock { $0 = error }
            }
        }
        try await eventually {
            clock.advance(.milliseconds(2))
            return late.withLock { $0 != nil }
        }
        await push.value
        #expect(late.withLock { $0?.message.contains("soon after they are opened") } == true)
        #expect(late.withLock { $0?.code } == .notSent)
        #expect(late.withLock { $0?.mayHaveBeenProcessed } == false)
        #expect(stage.server.connections.count == 6)
        try await stage.end()
    }

    @Test func `a service that leaves after every few pushes gets all of them`() async throws {
        let scene = try await Scene(
            simulator: { $0.faults = [.init(.goAway(reason: nil, last: .this), rate: 0.02)] },
            client: { $0.replacedPerSecond = 100 })
        // By its address, because the resolution of a name can take longer than all other steps.
        let place = APNsEnvironment.custom(host: "127.0.0.1", port: scene.simulator.port() ?? 0)
        let recipients = Samples.tokens(1500).map { APNsDeviceToken($0, in: place) }
        var accepted = 0
        for await result in try scene.client.send(.alert("Hi"), to: recipients) where result.isAccepted { accepted += 1 }
        #expect(accepted == 1500)
        #expect(scene.simulator.connections.count > 5)
        await scene.end()
    }

    @Test func `stream numbers that are used up roll over to a new connection`() async throws {
        let scene = try await Scene(client: {
            $0.firstStream = 0x7FFF_FFFF - 40
            $0.pool.maximum = 1
        })
        #expect(try await scene.outcomes(Samples.tokens(60)) == ["accepted": 60])
        #expect(scene.simulator.connections.count == 3)
        await scene.end()
    }

    @Test func `the pool grows when its window is full`() async throws {
        let scene = try await Scene(
            simulator: {
                $0.conditions.roundTrip = .milliseconds(40)
                $0.conditions.connectionWindow = 8000
            }, client: { $0.pool.maximum = 4 })
        let notification = APNsNotification.alert(title: String(repeating: "long ", count: 300))
        #expect(try await scene.outcomes(Samples.tokens(1000), notification) == ["accepted": 1000])
        #expect(scene.simulator.connections.count > 1)
        #expect(scene.simulator.connections.count <= 4)
        await scene.end()
    }

    @Test func `a key that is not related to the connection's is tried on a new one`() async throws {
        let stage = try await Stage { connection, request in
            connection.number == 1 && request.stream > 1
                ? connection.reject(request, 403, "UnrelatedKeyIdInToken") : connection.accept(request)
        }
        for _ in 0..<3 { #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted) }
        #expect(stage.server.connections.count == 2)
        try await stage.end()
    }

    @Test func `the delay in an answer of the service is respected`() async throws {
        let stage = try await Stage { connection, request in
            guard request.stream == 1 else { return connection.accept(request) }
            connection.answer(request.stream, 429, [("retry-after", "1")], body: "{\"reason\":\"TooManyRequests\"}")
        }
        let start = ContinuousClock.now
        #expect(try await stage.client.send(.alert("Hi"), to: Samples.token).isAccepted)
        #expect(ContinuousClock.now - start >= .seconds(1))
        try await stage.end()
    }
}
