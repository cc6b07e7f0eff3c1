import CarillonAPNs
import CarillonAPNsSimulator
import Logging
import Testing

typealias Simulator = APNsSimulator

/// A simulator with both environments, and a client with the simulator's own key.
struct Scene {
    let simulator: APNsSimulator
    let client: APNsClient

    static let app = "com.example.app"

    init(
        credentials: ((APNsSimulator) throws -> APNsCredentials)? = nil,
        simulator change: (inout APNsSimulator.Configuration) -> Void = { _ in },
        client configure: (inout APNsClient.Configuration) -> Void = { _ in }
    ) async throws {
        var configuration = APNsSimulator.Configuration(ports: [
            .init(.push), .init(.management), .init(.push, .production), .init(.management, .production),
        ])
        configuration.rules.unknownDevices = .register
        change(&configuration)
        simulator = try APNsSimulator(configuration)
        try await simulator.start()
        var options = APNsClient.Configuration(
            credentials: try credentials?(simulator) ?? Self.key(simulator.signingKey), bundleID: Self.app,
            environment: Self.environment(of: simulator))
        options.trustRoots = simulator.trustRoot
        options.timeout = .seconds(60)
        options.logger.logLevel = .error
        configure(&options)
        client = try APNsClient(options)
    }

    static func key(_ key: APNsSimulator.SigningKey) throws -> APNsCredentials {
        .token(try APNsTokenKey(pem: key.privateKey ?? "", keyID: key.id, teamID: key.teamID))
    }

    static func environment(
        of simulator: APNsSimulator, _ environment: APNsSimulator.Environment = .sandbox
    ) -> APNsEnvironment {
        .custom(
            host: "localhost", port: simulator.port(.push, environment) ?? 0,
            managementPort: simulator.port(.management, environment))
    }

    var production: APNsEnvironment { Self.environment(of: simulator, .production) }

    /// The answers' reasons, `accepted`, or the codes of errors, counted.
    func outcomes(_ tokens: [String], _ notification: APNsNotification = .alert("Hi")) async throws -> [String: Int] {
        var outcomes: [String: Int] = [:]
        for await result in try client.send(notification, to: tokens) {
            outcomes[Self.word(result.result), default: 0] += 1
        }
        return outcomes
    }

    static func word(_ result: Result<APNsResponse, APNsError>) -> String {
        switch result {
        case .success(let response): response.rejection.map { $0.reason?.rawValue ?? "\($0.status)" } ?? "accepted"
        case .failure(let error): error.code.description
        }
    }

    func reason(of notification: APNsNotification = .alert("Hi"), to token: String = Samples.token) async throws -> String {
        Self.word(.success(try await client.send(notification, to: token)))
    }

    func end() async {
        await client.shutDown(drains: false)
        await simulator.stop()
    }
}
