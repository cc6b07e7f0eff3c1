import CarillonAPNs
import CarillonAPNsSimulator
import Foundation
import Synchronization
import Testing

/// The answers of a strict service, and their interpretation by the library.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct HonestMistakeTests {
    @Test func `a push arrives as it was made, with the service's IDs`() async throws {
        let scene = try await Scene()
        let id = UUID()
        let notification = APNsNotification.alert(title: "Kettle", body: "The water boils.")
            .badge(2).collapseID("kettle").priority(.considerPower).id(id).expiration(Date(timeIntervalSinceNow: 60))
        let response = try await scene.client.send(notification, to: Samples.token)
        #expect(response.isAccepted)
        #expect(response.id == id.uuidString.lowercased())
        #expect(response.uniqueID != nil)
        let shown = try #require(scene.simulator.device(Samples.token)?.shown.first)
        #expect(String(decoding: shown.payload, as: UTF8.self) == notification.jsonString)
        #expect(shown.collapseID == "kettle")
        #expect(shown.priority == 5)
        #expect(shown.topic == Scene.app)
        await scene.end()
    }

    @Test(arguments: [
        APNsNotification.alert("x"), .background, .voip.custom("call", 1), .pushToTalk, .complication.custom("c", 1),
        .fileProvider(container: "c"), .location, .controls, .widgets,
        .startLiveActivity(attributesType: "T", attributes: ["a": 1], contentState: ["s": 1]).title("x"),
        .updateLiveActivity(contentState: ["s": 1]), .endLiveActivity(),
        .accessory(encryptedData: "ZA==", sessionIdentifier: "s", keyID: "k", messageIndex: "1"),
        .mdm(pushMagic: "m", topic: "com.apple.mgmt.External.7"),
    ])
    func `every push type is taken with its own topic and priority`(notification: APNsNotification) async throws {
        let scene = try await Scene()
        #expect(try await scene.reason(of: notification) == "accepted", "\(notification.jsonString)")
        await scene.end()
    }

    @Test(arguments: APNsSimulator.Reason.allCases)
    func `every reason is typed, classed and explained`(reason: APNsSimulator.Reason) async throws {
        let scene = try await Scene(client: { $0.retryPolicy = .never })
        try scene.simulator.setFaults([.init(.reject(reason))])
        let rejection = try #require(try await scene.client.send(.alert("Hi"), to: Samples.token).rejection)
        #expect(rejection.reason?.rawValue == reason.rawValue)
        #expect(APNsReason.known.contains { $0.rawValue == reason.rawValue })
        #expect(rejection.kind != .unknown)
        #expect((rejection.invalidSince != nil) == (rejection.status == 410))
        #expect(rejection.advice.hasSuffix("."))
        await scene.end()
    }

    @Test func `dead tokens and tokens of other apps are distinguished`() async throws {
        let scene = try await Scene(simulator: { $0.rules.unknownDevices = .refuse })
        let since = Int64(Date().timeIntervalSince1970 - 3600) * 1000
        let tokens = Samples.tokens(4)
        try scene.simulator.add(APNsSimulator.Device(token: tokens[0], topic: Scene.app))
        try scene.simulator.add(
            APNsSimulator.Device(token: tokens[1], topic: Scene.app, state: .unregistered(since: since)))
        try scene.simulator.add(APNsSimulator.Device(token: tokens[2], topic: "com.example.other"))
        var rejections: [String: APNsRejection] = [:]
        for await result in try scene.client.send(.alert("Hi"), to: tokens) {
            rejections[result.recipient] = result.rejection
        }
        #expect(rejections[tokens[0]] == nil)
        #expect(rejections[tokens[1]]?.kind == .deadToken)
        #expect(rejections[tokens[1]]?.invalidSince == Date(timeIntervalSince1970: Double(since) / 1000))
        #expect(rejections[tokens[2]]?.reason == .deviceTokenNotForTopic)
        #expect(rejections[tokens[3]]?.reason == .badDeviceToken)
        await scene.end()
    }

    @Test func `one client sends to both environments, each by its own connections`() async throws {
        let scene = try await Scene()
        let recipients = [
            APNsDeviceToken(Samples.token), APNsDeviceToken(Samples.token, in: scene.production),
        ]
        var accepted = 0
        for await result in try scene.client.send(.alert("Hi"), to: recipients) where result.isAccepted { accepted += 1 }
        #expect(accepted == 2)
        #expect(Set(scene.simulator.requests.map(\.environment)) == [.sandbox, .production])
        #expect(Set(scene.simulator.connections.map(\.environment)) == [.sandbox, .production])
        await scene.end()
    }

    @Test func `a key of the other environment, a foreign app and a revoked key are faults of the credentials`() async throws
    {
        let scene = try await Scene(credentials: { simulator in
            let key = try APNsSimulator.SigningKey(id: "PRODONLY00", environments: [.production])
            try simulator.add(key)
            return try Scene.key(key)
        })
        #expect(try await scene.reason() == "BadEnvironmentKeyIdInToken")
        scene.simulator.add(APNsSimulator.App(bundleID: "com.example.foreign", teamID: "OTHERTEAM0"))
        try scene.client.rotate(to: Scene.key(scene.simulator.signingKey))
        #expect(try await scene.reason() == "accepted")
        #expect(try await scene.reason(of: .alert("x").bundleID("com.example.foreign")) == "TopicDisallowed")
        scene.simulator.revokeKey(scene.simulator.signingKey.id)
        #expect(try await scene.reason() == "InvalidProviderToken")
        await scene.end()
    }

    @Test func `an app that is newer than the connection is reached by a new one`() async throws {
        let scene = try await Scene()
        #expect(try await scene.reason() == "accepted")
        scene.simulator.add(APNsSimulator.App(bundleID: "com.example.new", teamID: scene.simulator.signingKey.teamID))
        let outcome = try await scene.reason(of: .alert("x").bundleID("com.example.new"), to: Samples.tokens(1)[0])
        #expect(outcome == "accepted")
        #expect(scene.simulator.connections.count == 2)
        await scene.end()
    }

    @Test func `a token that grew old for the service is renewed, on a new connection`() async throws {
        let clock = Mutex((elapsed: Duration.zero, wall: Int64(Date().timeIntervalSince1970)))
        let scene = try await Scene(
            simulator: { $0.rules.tokenTroubleStays = true },
            client: {
                $0.timeSource = APNsTimeSource(
                    elapsed: { clock.withLock { $0.elapsed } }, secondsSince1970: { clock.withLock { $0.wall } })
            })
        #expect(try await scene.reason() == "accepted")
        // By the service's clock the token is too old now; the client's is behind.
        scene.simulator.advanceClock(by: .seconds(3700))
        clock.withLock {
            $0.elapsed += .seconds(25 * 60)
            $0.wall += 3700
        }
        #expect(try await scene.reason() == "accepted")
        #expect(scene.simulator.connections.map(\.providerTokens).reduce(0, +) == 2)
        await scene.end()
    }

    @Test(arguments: [(-7200, "ExpiredProviderToken"), (7200, "InvalidProviderToken")])
    func `a clock that is off is refused, with advice to set it`(seconds: Int64, reason: String) async throws {
        let scene = try await Scene(client: {
            let start = ContinuousClock.now
            $0.timeSource = APNsTimeSource(
                elapsed: { ContinuousClock.now - start },
                secondsSince1970: { Int64(Date().timeIntervalSince1970) + seconds })
        })
        let rejection = try #require(try await scene.client.send(.alert("Hi"), to: Samples.token).rejection)
        #expect(rejection.reason?.rawValue == reason)
        #expect(rejection.kind == .fixCredentials)
        #expect(rejection.advice.contains("clock"))
        await scene.end()
    }

    @Test func `an hour of pushes renews the token once, and the service is content`() async throws {
        let clock = Mutex((elapsed: Duration.zero, wall: Int64(Date().timeIntervalSince1970)))
        let scene = try await Scene(client: {
            // A clock that leaps would leave pings unanswered.
            $0.pool.pingsAfterIdle = .seconds(86_400)
            $0.pool.suspectsAfter = .seconds(86_400)
            $0.timeSource = APNsTimeSource(
                elapsed: { clock.withLock { $0.elapsed } }, secondsSince1970: { clock.withLock { $0.wall } })
        })
        for _ in 0..<6 {
            #expect(try await scene.outcomes(Samples.tokens(20)) == ["accepted": 20])
            scene.simulator.advanceClock(by: .seconds(600))
            clock.withLock {
                $0.elapsed += .seconds(600)
                $0.wall += 600
            }
        }
        #expect(scene.simulator.connections.map(\.providerTokens) == [2])
        await scene.end()
    }

    @Test func `a certificate sends to its own topic, and reports when it expires`() async throws {
        let scene = try await Scene(credentials: { simulator in
            let identity = try simulator.makeClientIdentity(topics: [Scene.app])
            let certificate = try APNsCertificate(pem: identity.certificate, privateKeyPEM: identity.privateKey)
            #expect(abs(certificate.expiresAt.timeIntervalSinceNow - 365 * 86_400) < 86_400 * 2)
            return .certificate(certificate)
        })
        #expect(try await scene.outcomes(Samples.tokens(50)) == ["accepted": 50])
        #expect(try await scene.reason(of: .alert("x").bundleID("com.example.other")) == "TopicDisallowed")
        #expect(scene.simulator.connections.allSatisfy { $0.hasCertificate && $0.providerTokens == 0 })
        await scene.end()
    }

    @Test func `broadcast channels are created and deleted, and their messages are stored`() async throws {
        let scene = try await Scene()
        let channels = try scene.client.channels()
        let created = try await channels.create(storing: .mostRecent)
        #expect(created.requestID != nil)
        let id = try #require(created.value?.id)
        #expect(try await channels.read(id).value?.storage == .mostRecent)
        #expect(try await channels.list().value == [id])
        let response = try await scene.client.broadcast(
            .updateLiveActivity(contentState: ["score": 1]).expiration(Date(timeIntervalSinceNow: 600)), to: id)
        #expect(response.isAccepted)
        #expect(response.requestID != nil)
        #expect(scene.simulator.channels.first?.id == id)
        let quiet = try #require(try await channels.create(storing: .nothing).value?.id)
        let refused = try await scene.client.broadcast(
            .updateLiveActivity(contentState: ["score": 1]).expiration(Date(timeIntervalSinceNow: 600)), to: quiet)
        #expect(refused.rejection?.reason == .badExpirationDate)
        #expect(try await channels.delete(id).rejection == nil)
        #expect(try await channels.read(id).rejection?.reason == .channelNotRegistered)
        #expect(try await scene.client.channels(in: scene.production).list().value == [])
        await scene.end()
    }
}
