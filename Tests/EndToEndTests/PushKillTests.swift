import AsyncHTTPClient
import CarillonAPNsSimulator
import CarillonWire
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization
import TestSupport
import Testing

/// The executable is killed while pushes are decided, sent and answered; every device that sleeps is woken all the same.
///
/// `CARILLON_PUSH_KILLS` sets the number of kills; a few times in a run of all tests.
@Suite(.timeLimit(.minutes(10)))
struct PushKillTests {
    private static let kills = Int(ProcessInfo.processInfo.environment["CARILLON_PUSH_KILLS"] ?? "") ?? 5
    private static let devicesAtOnce = 40

    private struct Registered: Decodable { var credential: String }
    private struct Opened: Decodable { var endpoint: String }

    /// The tokens of the devices whose message was accepted.
    private final class Accepted: Sendable {
        private let state = Mutex<(tokens: [String], isOver: Bool)>(([], false))

        var tokens: [String] { state.withLock { $0.tokens } }

        func add(_ token: String) { state.withLock { $0.tokens.append(token) } }
        func end() { state.withLock { $0.isOver = true } }

        /// Whether the given number was accepted, or nothing more is sent.
        func has(_ count: Int) -> Bool { state.withLock { $0.isOver || $0.tokens.count >= count } }
    }

    @Test func `kill -9 between decision, send and answer loses no push`() async throws {
        let files = try TemporaryDirectory.make()
        var configuration = APNsSimulator.Configuration(ports: [.init(.push, .production)])
        configuration.dataDirectory = files
        configuration.rules.unknownDevices = .register
        configuration.recordedRequests = 1_000_000
        // Answers take a while, so that a kill finds pushes under way.
        configuration.conditions.roundTrip = .milliseconds(20)
        let simulator = try APNsSimulator(configuration)
        try await simulator.start()
        let environment = [
            "CARILLON_KEY_FILE": files + "/key-file", "CARILLON_APNS_CA": files + "/authority.pem",
            "CARILLON_APNS_PRODUCTION": "localhost:\(simulator.port(.push, .production) ?? 0)",
            "CARILLON_REGISTRATION_RATE": "off", "CARILLON_ADDRESS_RATE": "off",
        ]
        let server = try await LiveServer.start(environment: environment)
        let key = try await server.whileStopped { directory in
            _ = try await run(
                [
                    "apps", "credentials", "set", LiveServer.app, "--data", directory, "--p8",
                    files + "/AuthKey_\(simulator.signingKey.id).p8", "--team-id", simulator.signingKey.teamID,
                ], environment: environment)
            return try await LiveServer.key(.client, in: directory, environment: environment)
        }
        var chance = SeededRandom.forTest()
        var number = 0
        var accepted: [String] = []
        for kill in 0..<Self.kills {
            var endpoints: [(token: String, endpoint: String)] = []
            for _ in 0..<Self.devicesAtOnce {
                number += 1
                let token = "cafe" + String(100_000 + number)
                endpoints.append((token, try await endpoint(token, server, key)))
            }
            // A number of messages rather than a time, so that a slow machine sends as much.
            let goal = Int.random(in: Self.devicesAtOnce / 4..<Self.devicesAtOnce, using: &chance)
            let delay = Duration.milliseconds(Int.random(in: 0..<20, using: &chance))
            let sent = Accepted()
            async let sending: Void = Self.send(to: endpoints, sent)
            try await eventually { sent.has(goal) }
            try await Task.sleep(for: delay)
            try await server.whileStopped(signal: SIGKILL) { _ in }
            await sending
            accepted += sent.tokens
            if kill % 10 == 9 { print("kills: \(kill + 1), accepted: \(accepted.count)") }
        }
        #expect(accepted.count >= Self.kills * Self.devicesAtOnce / 4, "a run with few messages tests little")
        // Pushes that were pending at the last kill are sent when their lease ends.
        let wanted = Set(accepted)
        let deadline = ContinuousClock.now + .seconds(180)
        var missing = wanted
        while !missing.isEmpty, ContinuousClock.now < deadline {
            missing.subtract(simulator.requests.filter { $0.status == 200 }.map { String($0.path.split(separator: "/")[2]) })
            if !missing.isEmpty { try await Task.sleep(for: .milliseconds(200)) }
        }
        #expect(missing.isEmpty, "\(missing.count) of \(wanted.count) devices were not woken")
        // Repeated pushes had one name.
        let names = Dictionary(grouping: simulator.requests.filter { $0.status == 200 }, by: \.path).mapValues { requests in
            Set(requests.compactMap { $0.headers["apns-id"] }).count
        }
        #expect(names.allSatisfy { $0.value == 1 }, "\(names.count { $0.value > 1 })")
        print(
            "accepted: \(wanted.count), pushes taken: \(simulator.totals.accepted), twice: \(simulator.totals.accepted - names.count)"
        )
        await simulator.stop()
    }

    private func endpoint(_ token: String, _ server: LiveServer, _ key: String) async throws -> String {
        let device = try await server.request(
            .POST, "/v1/devices", key: key, body: #"{"platform":"apple","pushToken":"\#(token)"}"#)
        let credential = try JSONDecoder().decode(Registered.self, from: Data(device.text.utf8)).credential
        let channel = try await server.request(
            .POST, "/v1/device/channels", key: credential, body: #"{"channelID":"\#(UUID().uuidString.lowercased())"}"#)
        return try JSONDecoder().decode(Opened.self, from: Data(channel.text.utf8)).endpoint
    }

    private static func send(to all: [(token: String, endpoint: String)], _ accepted: Accepted) async {
        defer { accepted.end() }
        for (token, endpoint) in all {
            var request = HTTPClientRequest(url: endpoint)
            request.method = .POST
            request.headers = ["TTL": "3600", "Content-Encoding": "identity"]
            request.body = .bytes(Array("x".utf8))
            guard let answer = try? await HTTPClient.shared.execute(request, timeout: .seconds(30)),
                answer.status == .created
            else { continue }
            accepted.add(token)
        }
    }
}
