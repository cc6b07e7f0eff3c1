import CarillonAPNs
import CarillonAPNsSimulator
import TestSupport
import Testing

/// A service with faults that real ones had: each push has its one correct result all the same.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MisbehaviourTests {
    @Test func `five hundred queued pushes put one stream on the wire until the first is accepted`() async throws {
        let scene = try await Scene(
            simulator: { $0.faults = [.init(.delay(.milliseconds(50)))] },
            client: { $0.pool.maximum = 1 })
        #expect(try await scene.outcomes(Samples.tokens(500)) == ["accepted": 500])
        let report = try #require(scene.simulator.connections.first)
        #expect(report.mostStreamsAtFirst == 1)
        #expect(report.mostStreams > 1)
        #expect(report.priorityFrames == 0)
        #expect(report.negotiatedProtocol == "h2")
        #expect(report.headerBlockBytes <= 110)
        await scene.end()
    }

    /// The first answer takes a second, each other one twelve.
    private static let slow: [APNsSimulator.FaultRule] = [
        .init(.delay(.seconds(1)), times: 1), .init(.delay(.seconds(12))),
    ]

    @Test func `hundreds of dead tokens do not keep a connection at one stream`() async throws {
        let scene = try await Scene(
            simulator: {
                $0.rules.unknownDevices = .refuse
                // So long that the simulator reads more than a hundred requests before its second answer.
                $0.faults = Self.slow
            }, client: { $0.pool.maximum = 1 })
        #expect(try await scene.outcomes(Samples.tokens(400)) == ["BadDeviceToken": 400])
        let report = try #require(scene.simulator.connections.first)
        #expect(report.mostStreamsAtFirst == 1)
        #expect(report.mostStreams > 100)
        #expect(report.accepted == 0)
        await scene.end()
    }

    @Test(arguments: [
        (APNsSimulator.Device.State.unregistered(since: 1_700_000_000_000), "Unregistered"),
        (.expired(since: 1_700_000_000_000), "ExpiredToken"),
    ])
    func `hundreds of tokens that are gone do not keep a connection at one stream`(
        state: APNsSimulator.Device.State, reason: String
    ) async throws {
        let scene = try await Scene(
            simulator: { $0.faults = Self.slow }, client: { $0.pool.maximum = 1 })
        let tokens = Samples.tokens(200)
        for token in tokens {
            try scene.simulator.add(APNsSimulator.Device(token: token, topic: Scene.app, state: state))
        }
        #expect(try await scene.outcomes(tokens) == [reason: 200])
        let report = try #require(scene.simulator.connections.first)
        #expect(report.mostStreamsAtFirst == 1)
        #expect(report.mostStreams > 100)
        await scene.end()
    }

    @Test func `a page of another program counts as no acceptance of the simulator`() async throws {
        let scene = try await Scene(simulator: { $0.faults = [.init(.answer(status: 200, .html))] })
        let error = await #expect(throws: APNsError.self) {
            try await scene.client.send(.alert("Hi"), to: Samples.token)
        }
        #expect(error?.code == .answerInvalid)
        let report = try #require(scene.simulator.connections.first)
        #expect(report.requests == 1)
        #expect(report.accepted == 0)
        await scene.end()
    }

    @Test(arguments: [APNsSimulator.Reason.invalidProviderToken, .topicDisallowed, .serviceUnavailable])
    func `refused credentials and trouble keep a connection at one stream`(reason: APNsSimulator.Reason) async throws {
        let scene = try await Scene(
            simulator: { $0.faults = [.init(.reject(reason))] },
            client: {
                $0.pool.maximum = 1
                $0.retryPolicy = .never
            })
        #expect(try await scene.outcomes(Samples.tokens(50)) == [reason.rawValue: 50])
        #expect(scene.simulator.connections.allSatisfy { $0.mostStreams <= 1 })
        await scene.end()
    }

    @Test(arguments: [
        APNsSimulator.Conditions.Rejection.lowersLimit, .lowersLimitAndRefuses,
    ])
    func `rejections that lower the limit lose nothing, and it recovers`(
        _ rejection: APNsSimulator.Conditions.Rejection
    ) async throws {
        let scene = try await Scene(
            simulator: {
                $0.rules.unknownDevices = .refuse
                $0.conditions.rejection = rejection
            }, client: { $0.pool.maximum = 1 })
        let tokens = Samples.tokens(3000)
        for (index, token) in tokens.enumerated() where index % 40 != 7 {
            try scene.simulator.add(APNsSimulator.Device(token: token, topic: Scene.app))
        }
        #expect(try await scene.outcomes(tokens) == ["accepted": 2925, "BadDeviceToken": 75])
        // No stream beyond a confirmed limit, which would have ended the connection.
        #expect(scene.simulator.connections.count == 1)
        #expect(tokens.allSatisfy { (scene.simulator.device($0)?.shown.count ?? 1) == 1 })
        await scene.end()
    }

    @Test func `thousands of refusals, resets and changed settings do not end a connection`() async throws {
        let scene = try await Scene(
            simulator: {
                $0.faults = [
                    .init(.reset(.refusedStream), rate: 0.2), .init(.streamLimit(40), rate: 0.1),
                    .init(.streamLimit(1000), rate: 0.1),
                    .init(.reject(.badDeviceToken), at: .headers, stopsBody: true, rate: 0.1),
                ]
            }, client: { $0.pool.maximum = 1 })
        let outcomes = try await scene.outcomes(Samples.tokens(6000))
        #expect(outcomes.values.reduce(0, +) == 6000)
        #expect(Set(outcomes.keys) == ["accepted", "BadDeviceToken"])
        #expect(scene.simulator.faultCounts.allSatisfy { $0 > 250 })
        #expect(scene.simulator.connections.count == 1)
        await scene.end()
    }

    @Test(arguments: [APNsSimulator.Fault.LastStream.this, .before, .none, .all])
    func `after GOAWAY everything is answered, and nothing twice`(last: APNsSimulator.Fault.LastStream) async throws {
        let scene = try await Scene(simulator: {
            $0.faults = [.init(.goAway(reason: "Shutdown", last: last), skip: 50, times: 3)]
        })
        let tokens = Samples.tokens(1000)
        #expect(try await scene.outcomes(tokens) == ["accepted": 1000])
        #expect(tokens.allSatisfy { scene.simulator.device($0)?.shown.count == 1 })
        await scene.end()
    }

    @Test func `a GOAWAY that names a bad token fails nobody else`() async throws {
        let scene = try await Scene(simulator: { $0.conditions.badDeviceTokens = 3 })
        let tokens = Samples.tokens(200)
        try scene.simulator.setFaults([.init(.reject(.badDeviceToken), skip: 20, times: 9)])
        let outcomes = try await scene.outcomes(tokens)
        #expect(outcomes["BadDeviceToken"] == 9)
        #expect(outcomes["accepted"] == 191)
        #expect(scene.simulator.connections.count > 1)
        await scene.end()
    }

    @Test func `each push of a broken connection reports whether it may have been processed`() async throws {
        let scene = try await Scene(simulator: { $0.faults = [.init(.close, at: .processed, skip: 30, times: 2)] })
        let tokens = Samples.tokens(400)
        var lost = 0
        for await result in try scene.client.send(.alert("Hi"), to: tokens) {
            let shown = scene.simulator.device(result.recipient)?.shown.count ?? 0
            if result.isAccepted {
                #expect(shown == 1)
            } else {
                #expect(result.error?.code == .connectionLost)
                #expect(result.error?.mayHaveBeenProcessed == true)
                lost += 1
            }
        }
        #expect(lost >= 2)
        await scene.end()
    }

    @Test(arguments: [
        APNsSimulator.Fault.answer(status: 502, .html), .answer(status: 500, .empty),
        .answer(status: 503, .huge(bytes: 2_000_000)),
        .answer(status: 400, .text("{\"reason\":")),
    ])
    func `any body is an answer with its status`(fault: APNsSimulator.Fault) async throws {
        let scene = try await Scene(
            simulator: { $0.faults = [.init(fault, skip: 1, times: 1)] }, client: { $0.retryPolicy = .never })
        #expect(try await scene.reason() == "accepted")
        let rejection = try await scene.client.send(.alert("Hi"), to: Samples.token).rejection
        #expect((rejection?.status ?? 0) >= 400)
        #expect(rejection?.reason == nil)
        #expect(try await scene.reason() == "accepted")
        await scene.end()
    }

    @Test func `a wedged connection is replaced, and the next push succeeds`() async throws {
        let scene = try await Scene(
            simulator: { $0.faults = [.init(.wedge, at: .processed, skip: 1, times: 1)] },
            client: {
                $0.pool.suspectsAfter = .seconds(1)
                $0.pool.answersPingWithin = .seconds(10)
            })
        #expect(try await scene.reason() == "accepted")
        let error = await #expect(throws: APNsError.self) {
            try await scene.client.send(.alert("Hi"), to: Samples.token)
        }
        #expect(error?.code == .connectionLost)
        #expect(error?.mayHaveBeenProcessed == true)
        #expect(try await scene.reason() == "accepted")
        #expect(scene.simulator.connections.count == 2)
        #expect(error?.message.contains("ping") == true, "\(error?.message ?? "")")
        await scene.end()
    }

    @Test func `narrow windows and a long way stop nothing`() async throws {
        let scene = try await Scene(simulator: {
            $0.conditions.roundTrip = .milliseconds(20)
            $0.conditions.streamWindow = 700
            $0.conditions.connectionWindow = 3000
        })
        let notification = APNsNotification.alert(title: String(repeating: "long ", count: 500))
        #expect(try await scene.outcomes(Samples.tokens(60), notification) == ["accepted": 60])
        await scene.end()
    }

    @Test(arguments: [
        (APNsSimulator.Conditions.Certificate.wrongHost, "another name"), (.expired, "not trusted"),
        (.notYetValid, "not trusted"), (.untrusted, "not trusted"),
    ])
    func `a service with a wrong certificate gets nothing`(
        certificate: APNsSimulator.Conditions.Certificate, words: String
    ) async throws {
        let scene = try await Scene(simulator: { $0.conditions.certificate = certificate })
        let error = await #expect(throws: APNsError.self) {
            try await scene.client.send(.alert("Hi"), to: Samples.token)
        }
        #expect(error?.code == .connectionFailed)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
        #expect(scene.simulator.totals.requests == 0)
        await scene.end()
    }

    @Test(arguments: [APNsSimulator.Conditions.Welcome.closed, .silent])
    func `a service that rejects the connection is a descriptive error`(_ welcome: APNsSimulator.Conditions.Welcome)
        async throws
    {
        let scene = try await Scene(
            simulator: { $0.conditions.welcome = welcome }, client: { $0.connectTimeout = .milliseconds(500) })
        let error = await #expect(throws: APNsError.self) { try await scene.client.warmUp() }
        #expect(error?.code == .connectionFailed)
        #expect(error?.mayHaveBeenProcessed == false)
        await scene.end()
    }

    @Test func `a thousand queued pushes to a silent service end at their deadline, and free their memory`() async throws {
        let scene = try await Scene(
            simulator: { $0.faults = [.init(.silence)] }, client: { $0.timeout = .seconds(10) })
        let outcomes = try await scene.outcomes(Samples.tokens(1000))
        // Pushes without an answer have a stream each; the others were never sent.
        #expect(outcomes.values.reduce(0, +) == 1000)
        #expect(Set(outcomes.keys) == ["timedOut", "notSent"])
        await scene.end()
    }

    @Test func `a client that is dropped closes its connections when the last push is answered`() async throws {
        let simulator = try APNsSimulator(.init())
        var rules = simulator.rules
        rules.unknownDevices = .accept
        simulator.rules = rules
        try await simulator.start()
        try simulator.setFaults([.init(.delay(.milliseconds(100)))])
        let response = try await {
            var configuration = APNsClient.Configuration(
                credentials: try Scene.key(simulator.signingKey), bundleID: Scene.app,
                environment: Scene.environment(of: simulator))
            configuration.trustRoots = simulator.trustRoot
            return try await APNsClient(configuration).send(.alert("Hi"), to: Samples.token)
        }()
        #expect(response.isAccepted)
        try await eventually { simulator.connections.first?.closedAt != nil }
        await simulator.stop()
    }

    @Test func `a batch that is read no further sends no further`() async throws {
        let scene = try await Scene(client: { $0.batchWindow = 10 })
        var read = 0
        for await _ in try scene.client.send(.alert("Hi"), to: Samples.tokens(1000)) {
            read += 1
            if read == 25 { break }
        }
        // An earlier push would have arrived before this answer.
        #expect(try await scene.reason() == "accepted")
        #expect(scene.simulator.totals.requests < 60)
        await scene.end()
    }
}
