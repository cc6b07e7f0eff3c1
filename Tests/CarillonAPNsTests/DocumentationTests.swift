import CarillonAPNs
import CarillonAPNsSimulator
import Foundation
import Logging
import ServiceLifecycle
import TestSupport
import Testing
import UnixSignals

/// The code of the pages, so that it continues to compile, and has the effect that the pages describe. `pages agree with this
/// file` compares each block of a page with this file.
@Suite(.timeLimit(.minutes(5)))
struct DocumentationTests {
    struct Install: APNsRecipient {
        let user: Int
        let deviceToken: String
        let environment: APNsEnvironment?
    }

    struct MatchState: Encodable { var home: Int; var away: Int }

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
            print("reached user", result.recipient.user)
        }
        #expect(stage.server.requests.count == 2)
        try await stage.end()
    }

    @Test func `lists and sources are sent to`() async throws {
        let stage = try await Stage { connection, request in
            request.token == "dead" ? connection.reject(request, 410, "Unregistered") : connection.accept(request)
        }
        let client = stage.client
        let deviceTokens = ["aa", "dead", "bb"]
        var forgotten: [String] = []
        func forget(_ token: String) { forgotten.append(token) }
        for await result in try client.send(.alert("Hello"), to: deviceTokens) {
            if result.rejection?.kind == .deadToken { forget(result.recipient) }
        }
        #expect(forgotten == ["dead"])
        let rows = AsyncStream { continuation in
            for token in deviceTokens { continuation.yield(token) }
            continuation.finish()
        }
        var sent = 0
        for try await result in try client.send(.alert("Hello"), to: rows) where result.isAccepted {
            sent += 1
        }
        #expect(sent == 2)
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

    @Test func `the simulator within the process receives pushes and shows them`() async throws {
        var title: String?
        try await APNsSimulator.withSimulator { simulator in
            try simulator.add(APNsSimulator.Device(token: "00ff00ff", topic: "com.example.app"))
            let key = simulator.signingKey
            var configuration = APNsClient.Configuration(
                credentials: .token(try APNsTokenKey(pem: key.privateKey ?? "", keyID: key.id, teamID: key.teamID)),
                bundleID: "com.example.app", environment: .custom(host: "localhost", port: simulator.port() ?? 0))
            configuration.trustRoots = simulator.trustRoot
            let client = try APNsClient(configuration)
            let response = try await client.send(.alert(title: "Hello"), to: "00ff00ff")
            let shown = simulator.device("00ff00ff")?.shown.first?.title
            await client.shutDown()
            title = response.isAccepted ? shown : nil
        }
        #expect(title == "Hello")
    }

    @Test func `the lines of the simulator's own page run`() async throws {
        let pushes = Task {
            try await APNsSimulator.withSimulator { simulator in
                try simulator.add(APNsSimulator.Device(token: "00ff00ff", topic: "com.example.app"))
                try simulator.setFaults([.init(.reset(.refusedStream), times: 1)])
                try await Self.push(to: simulator)
                try await simulator.waitForRequests(1)
                let shown = simulator.device("00ff00ff")?.shown
                print(shown?.first?.title ?? "nothing")
                return shown?.first?.title
            }
        }
        #expect(try await pushes.value == "Hello")
    }

    private static func push(to simulator: APNsSimulator) async throws {
        let key = simulator.signingKey
        var configuration = APNsClient.Configuration(
            credentials: .token(try APNsTokenKey(pem: key.privateKey ?? "", keyID: key.id, teamID: key.teamID)),
            bundleID: "com.example.app", environment: .custom(host: "localhost", port: simulator.port() ?? 0))
        configuration.trustRoots = simulator.trustRoot
        let client = try APNsClient(configuration)
        _ = try await client.send(.alert(title: "Hello"), to: "00ff00ff")
        await client.shutDown()
    }

    @Test func `files are requested at the places in the documentation`() async {
        for lines in [toApple, withCertificate] {
            let error = await #expect(throws: APNsError.self) { try await lines("00ff00ff") }
            #expect(error?.code == .credentialsInvalid)
        }
    }

    /// Ends where the key is not found.
    private func toApple(_ deviceToken: String) async throws {
        let client = try APNsClient(
            .init(
                credentials: .token(p8: "AuthKey.p8", keyID: "ABC1234567", teamID: "DEF1234567"), bundleID: "com.example.app"
            ))
        let response = try await client.send(.alert(title: "Kettle", body: "The water boils."), to: deviceToken)
        _ = response
        do {
            let response = try await client.send(.alert("Hello"), to: APNsDeviceToken(deviceToken, in: .sandbox))
            _ = response
        }
        let logger = Logger(label: "backend")
        let group = ServiceGroup(services: [client], gracefulShutdownSignals: [.sigterm], logger: logger)
        try await group.run()
    }

    /// Ends where the certificate is not found.
    private func withCertificate(_ deviceToken: String) async throws {
        let certificate = try APNsCertificate(p12Path: "push.p12", passphrase: "secret")
        print("expires", certificate.expiresAt)
        let client = try APNsClient(.init(credentials: .certificate(certificate), bundleID: "com.example.app"))
        await client.shutDown()
    }

    @Test func `activities are created as in the documentation, and reach the subscribed devices`() async throws {
        let start = APNsNotification.startLiveActivity(
            attributesType: "MatchAttributes", attributes: ["team": "Home"], contentState: MatchState(home: 0, away: 0),
            updates: .token
        ).title("Kick-off")
        let update = APNsNotification.updateLiveActivity(contentState: MatchState(home: 1, away: 0))
        let end = APNsNotification.endLiveActivity(contentState: MatchState(home: 1, away: 0), dismissalDate: .now + 600)
        for (notification, event) in [(start, "start"), (update, "update"), (end, "end")] {
            #expect(notification.jsonString.contains(#""event":"\#(event)""#))
        }
        let scene = try await Scene()
        let client = scene.client
        var isAccepted = false
        let channels = try client.channels()
        if let channel = try await channels.create(storing: .mostRecent).value {
            let response = try await client.broadcast(update.expiration(.immediately), to: channel.id)
            isAccepted = response.isAccepted
        }
        #expect(isAccepted)
        await scene.end()
    }

    /// The code for Go-APNS, with the terms of `Moving.md`.
    @Test func `code that moves from Go-APNS has the same effect`() throws {
        let client = try APNsClient(.init(credentials: try Samples.credentials(), bundleID: "com.example.app"))
        func priority(_ notification: APNsNotification) throws -> String? {
            try client.headers(of: notification).first { $0.name == "apns-priority" }?.value
        }
        let alert = APNsNotification.alert(title: "Hi")
        #expect(alert.launchImage("start").jsonString.contains(#""launch-image":"start""#))
        #expect(alert.mutableContent().jsonString.contains(#""mutable-content":1"#))
        #expect(alert.badge(7).noBadgeChange().jsonString == alert.jsonString)
        #expect(!alert.jsonString.contains("badge"))
        #expect(alert.badge(0).jsonString.contains(#""badge":0"#))
        #expect(alert.contentAvailable().jsonString.contains(#""content-available":1"#))
        #expect(try priority(alert.contentAvailable()) == "10")
        #expect(try priority(alert.contentAvailable().priority(.considerPower)) == "5")
        #expect(try priority(.background) == "5")
        #expect(alert.contentAvailable().contentUnavailable().jsonString == alert.jsonString)
        let custom = alert.custom("one", 1).custom("two", "2").jsonString
        #expect(custom.contains(#""one":1"#) && custom.contains(#""two":"2""#))
    }

    // MARK: The pages themselves

    /// The places where a test must differ from the page, with the text of the page.
    private static let otherwise = [
        (#"\(sim)/"#, "sim/"),
        ("Scene.environment(of: simulator))", #".custom(host: "localhost", port: 2197, managementPort: 2195))"#),
        ("update.expiration(.immediately), to:", "update, to:"),
        ("isAccepted = response.isAccepted }", "}"),
        (
            "try await Self.push(to: simulator)",
            """
            // Point your provider at localhost and simulator.port(), let it trust simulator.trustRoot, and let it sign with
            // simulator.signingKey.privateKey. Then push, and look:
            """
        ),
        (#""nothing") return shown?.first?.title }"#, #""nothing") }"#),
        (
            "let shown = simulator.device(\"00ff00ff\")?.shown.first?.title await client.shutDown() title = response.isAccepted ? shown : nil }",
            "let shown = simulator.device(\"00ff00ff\")?.shown.first?.title await client.shutDown() }"
        ),
    ]

    /// Blocks that are not code of a program.
    private static let others = ["dependencies: [.package(", "import CarillonAPNs import Foundation"]

    @Test(arguments: [
        ("README.md", 1), ("Sources/CarillonAPNs/CarillonAPNs.docc/GettingStarted.md", 8),
        ("Sources/CarillonAPNs/CarillonAPNs.docc/KeysAndCertificates.md", 1),
        ("Sources/CarillonAPNs/CarillonAPNs.docc/LiveActivities.md", 2),
        ("Sources/CarillonAPNs/CarillonAPNs.docc/ManyTokens.md", 3),
        ("Sources/CarillonAPNsSimulator/CarillonAPNsSimulator.docc/CarillonAPNsSimulator.md", 1),
    ])
    func `pages agree with this file`(page: String, count: Int) throws {
        var source = PageCode.plain(try String(contentsOfFile: #filePath, encoding: .utf8))
        for (here, there) in Self.otherwise { source = source.replacing(PageCode.plain(here), with: PageCode.plain(there)) }
        let blocks = try PageCode.blocks(of: page)
        #expect(blocks.count == count)
        for block in blocks where !Self.others.contains(where: block.hasPrefix) {
            // Its imports are at the head of this file; types of the page are at their own places.
            for part in Self.parts(of: block) {
                let isHere = source.contains(part)
                #expect(isHere, "\(page): \(part)")
            }
        }
    }

    private static func parts(of block: String) -> [String] {
        let code = PageCode.withoutImports(block)
        // A type at the beginning of a block is a type of this suite.
        guard code.hasPrefix("struct "), let end = code.range(of: "} ")?.upperBound else { return [code] }
        return [String(code[..<end]).trimmingCharacters(in: .whitespaces), String(code[end...])]
    }

    @Test func `every page of code is compared with this file`() throws {
        for folder in ["Sources/CarillonAPNs/CarillonAPNs.docc", "Sources/CarillonAPNsSimulator/CarillonAPNsSimulator.docc"]
        {
            let names = try FileManager.default.contentsOfDirectory(atPath: PageCode.root.appending(path: folder).path)
            let withCode = try names.filter { try !PageCode.blocks(of: "\(folder)/\($0)").isEmpty }
            let known = [
                "GettingStarted.md", "KeysAndCertificates.md", "LiveActivities.md", "ManyTokens.md",
                "CarillonAPNsSimulator.md",
            ]
            #expect(Set(withCode).isSubset(of: known), "\(withCode)")
        }
    }
}
