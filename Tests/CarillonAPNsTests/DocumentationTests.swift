import CarillonAPNs
import CarillonAPNsSimulator
import Foundation
import Testing

/// The code of the documentation, so that it goes on compiling.
struct DocumentationTests {
    struct Install: APNsRecipient {
        let user: Int
        let deviceToken: String
        let environment: APNsEnvironment?
    }

    struct MatchState: Encodable {
        var home: Int
        var away: Int
    }

    @Test func `the first lines work against any server`() async throws {
        let stage = try await Stage()
        let client = stage.client
        let deviceToken = Samples.token
        let response = try await client.send(.alert(title: "Kettle", body: "The water boils."), to: deviceToken)
        switch response.outcome {
        case .accepted: break
        case .rejected(let rejection):
            switch rejection.kind {
            case .deadToken: print("forget the token; it is invalid since", rejection.invalidSince ?? .now)
            case .fixRequest, .fixCredentials: print("our mistake:", rejection)
            case .slowDown, .tryLater, .unknown: print("later:", rejection)
            }
        }
        #expect(response.isAccepted)
        let installs = [Install(user: 1, deviceToken: deviceToken, environment: nil)]
        for await result in try client.send(.alert("Hello"), to: installs) where result.isAccepted {
            #expect(result.recipient.user == 1)
        }
        try await stage.end()
    }

    @Test func `the lines for one's own machine reach the simulator`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "carillon-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        var settings = APNsSimulator.Configuration()
        settings.dataDirectory = directory.path
        settings.rules.unknownDevices = .register
        try await APNsSimulator.withSimulator(settings) { simulator in
            let sim = directory.path
            var configuration = APNsClient.Configuration(
                credentials: try .token(p8: "\(sim)/AuthKey_SIMULATED1.p8", keyID: "SIMULATED1", teamID: "SIMTEAM001"),
                bundleID: "com.example.app", environment: Scene.environment(of: simulator))
            configuration.trustRoots = try String(contentsOfFile: "\(sim)/authority.pem", encoding: .utf8)
            let client = try APNsClient(configuration)
            let response = try await client.send(.alert("Hello"), to: "00ff00ff")
            #expect(response.isAccepted)
            await client.shutDown()
        }
    }

    @Test func `the lines of the simulator's own page run`() async throws {
        try await APNsSimulator.withSimulator { simulator in
            try simulator.add(APNsSimulator.Device(token: "00ff00ff", topic: "com.example.app"))
            try simulator.setFaults([.init(.reset(.refusedStream), times: 1)])

            let key = simulator.signingKey
            var configuration = APNsClient.Configuration(
                credentials: .token(try APNsTokenKey(pem: key.privateKey ?? "", keyID: key.id, teamID: key.teamID)),
                bundleID: "com.example.app", environment: .custom(host: "localhost", port: simulator.port() ?? 0))
            configuration.trustRoots = simulator.trustRoot
            let client = try APNsClient(configuration)
            let rows = AsyncStream { continuation in
                continuation.yield("00ff00ff")
                continuation.finish()
            }
            var sent = 0
            for try await result in try client.send(.alert(title: "Hello"), to: rows) where result.isAccepted {
                sent += 1
            }
            #expect(sent == 1)

            try await simulator.waitForRequests(1)
            let shown = simulator.device("00ff00ff")?.shown
            #expect(shown?.first?.title == "Hello")
            await client.shutDown()
        }
    }

    @Test func `files are asked for where the documentation says`() {
        #expect(throws: APNsError.self) {
            try APNsClient(
                .init(
                    credentials: .token(p8: "AuthKey.p8", keyID: "ABC1234567", teamID: "DEF1234567"),
                    bundleID: "com.example.app"))
        }
        #expect(throws: APNsError.self) { try APNsCertificate(p12Path: "push.p12", passphrase: "secret") }
    }

    @Test func `activities are made as the documentation says`() {
        let start = APNsNotification.startLiveActivity(
            attributesType: "MatchAttributes", attributes: ["team": "Home"], contentState: MatchState(home: 0, away: 0),
            updates: .token
        ).title("Kick-off")
        let update = APNsNotification.updateLiveActivity(contentState: MatchState(home: 1, away: 0))
        let end = APNsNotification.endLiveActivity(contentState: MatchState(home: 1, away: 0), dismissalDate: .now + 600)
        for (notification, event) in [(start, "start"), (update, "update"), (end, "end")] {
            #expect(notification.jsonString.contains(#""event":"\#(event)""#))
        }
    }
}
