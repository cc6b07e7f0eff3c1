import CarillonAPNs
import CarillonAPNsSimulator
import Foundation
import Testing

/// The service's rules about provider tokens, kept by the clients of one process.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct TokenRuleTests {
    private static func now() -> Int64 { Int64(Date().timeIntervalSince1970) }

    private static func client(of scene: Scene, _ clock: ManualTime) throws -> APNsClient {
        var options = scene.client.configuration
        options.timeSource = clock.source
        // A clock that leaps would leave pings and pushes unanswered.
        options.pool.pingsAfterIdle = .seconds(86_400)
        options.pool.suspectsAfter = .seconds(86_400)
        options.timeout = .seconds(86_400)
        return try APNsClient(options)
    }

    @Test func `connections of every age keep to the service's rule, and no push is refused`() async throws {
        let clock = ManualTime(wall: Self.now())
        let scene = try await Scene()
        var clients: [(client: APNsClient, opens: Int)] = []
        for opens in [0, 25, 49, 51] { clients.append((try Self.client(of: scene, clock), opens)) }
        for minute in 0...105 {
            for (client, opens) in clients where minute >= opens {
                #expect(try await client.send(.alert("Hi"), to: Samples.token).isAccepted)
            }
            clock.advance(.seconds(60))
            scene.simulator.advanceClock(by: .seconds(60))
        }
        #expect(scene.simulator.totals.rejected.isEmpty)
        #expect(scene.simulator.totals.requests == 106 + 81 + 57 + 55)
        // The client that connected a minute before the renewal has a second connection.
        #expect(scene.simulator.connections.count == 5)
        for (client, _) in clients { await client.shutDown() }
        await scene.end()
    }

    @Test func `five apps with one key send one provider token`() async throws {
        let clock = ManualTime()
        let stage = try await Stage(configure: {
            $0.timeSource = clock.source
            $0.pool.pingsAfterIdle = .seconds(86_400)
        })
        var clients = [stage.client]
        for number in 1..<5 {
            var configuration = stage.client.configuration
            configuration.bundleID = "com.example.app\(number)"
            configuration.credentials = try Samples.credentials()
            clients.append(try APNsClient(configuration))
        }
        for _ in 0..<2 {
            for client in clients { #expect(try await client.send(.alert("Hi"), to: Samples.token).isAccepted) }
            clock.advance(.seconds(50 * 60))
        }
        let tokens = stage.server.requests.compactMap { $0.headers["authorization"] }
        #expect(tokens.count == 10)
        #expect(Set(tokens.prefix(5)).count == 1)
        #expect(Set(tokens).count == 2)
        #expect(stage.server.connections.count == 5)
        for client in clients.dropFirst() { await client.shutDown() }
        try await stage.end()
    }

    @Test func `a clock that is set right is enough after a start with a wrong one`() async throws {
        let clock = ManualTime(wall: Self.now() - 7200)
        let scene = try await Scene(
            simulator: { $0.rules.tokenTroubleStays = true }, client: { $0.timeSource = clock.source })
        for _ in 0..<3 { #expect(try await scene.reason() == "ExpiredProviderToken") }
        clock.setWall(by: 7200)
        #expect(try await scene.reason() == "accepted")
        #expect(scene.simulator.connections.allSatisfy { $0.providerTokens <= 1 })
        await scene.end()
    }

    @Test func `a revoked key ends a whole batch at once, with its reason`() async throws {
        let scene = try await Scene(simulator: { $0.faults = [.init(.delay(.milliseconds(50)))] })
        scene.simulator.revokeKey(scene.simulator.signingKey.id)
        #expect(try await scene.outcomes(Samples.tokens(3000)) == ["InvalidProviderToken": 3000])
        #expect(scene.simulator.totals.requests < 100)
        await scene.end()
    }

    @Test func `a topic that the key may not send to ends the pushes that wait for it, and no others`() async throws {
        let scene = try await Scene(simulator: { $0.faults = [.init(.delay(.milliseconds(50)))] })
        scene.simulator.add(APNsSimulator.App(bundleID: "com.example.foreign", teamID: "OTHERTEAM0"))
        async let foreign = scene.outcomes(Samples.tokens(1000), .alert("Hi").bundleID("com.example.foreign"))
        async let own = scene.outcomes(Samples.tokens(1000))
        let (foreignOutcomes, ownOutcomes) = try await (foreign, own)
        #expect(foreignOutcomes == ["TopicDisallowed": 1000])
        #expect(ownOutcomes == ["accepted": 1000])
        await scene.end()
    }

    @Test func `a topic that the key may not send to is requested once`() async throws {
        let scene = try await Scene(client: { $0.timeSource = ManualTime(wall: Self.now()).source })
        scene.simulator.add(APNsSimulator.App(bundleID: "com.example.foreign", teamID: "OTHERTEAM0"))
        let foreign = try await scene.outcomes(Samples.tokens(1000), .alert("Hi").bundleID("com.example.foreign"))
        #expect(foreign == ["TopicDisallowed": 1000])
        #expect(scene.simulator.totals.requests == 1)
        #expect(try await scene.outcomes(Samples.tokens(10)) == ["accepted": 10])
        #expect(scene.simulator.totals.requests == 11)
        await scene.end()
    }
}
