import CarillonAPNsSimulator
import CarillonClient
import CarillonWire
import Foundation
import TestSupport
import Testing

/// The real executable with credentials for a simulator of Apple's service.
struct PushWorld {
    let simulator: APNsSimulator
    let server: LiveServer
    let clientKey: String
    let senderKey: String
    let admin: String
    /// The stored data of the simulator: its keys and its authority.
    let files: String

    init() async throws {
        files = try TemporaryDirectory.make()
        var configuration = APNsSimulator.Configuration(
            ports: [.init(.push, .production), .init(.push, .sandbox)])
        configuration.dataDirectory = files
        simulator = try APNsSimulator(configuration)
        try await simulator.start()
        let environment = [
            "CARILLON_KEY_FILE": files + "/key-file", "CARILLON_APNS_CA": files + "/authority.pem",
            "CARILLON_APNS_PRODUCTION": "localhost:\(simulator.port(.push, .production) ?? 0)",
            "CARILLON_APNS_SANDBOX": "localhost:\(simulator.port(.push, .sandbox) ?? 0)",
        ]
        server = try await LiveServer.start(environment: environment)
        (clientKey, senderKey, admin) = try await server.whileStopped { directory in
            let client = try await LiveServer.key(.client, in: directory, environment: environment)
            let sender = try await LiveServer.key(.sender, in: directory, environment: environment)
            return (client, sender, try await LiveServer.key(.admin, in: directory, environment: environment))
        }
        try await setCredentials("production")
    }

    func setCredentials(_ environment: String) async throws {
        let file = files + "/AuthKey_\(simulator.signingKey.id).p8"
        _ = try await run(
            [
                "apps", "credentials", "set", LiveServer.app, "--environment", environment, "--server", server.address,
                "--key", admin, "--p8", file, "--team-id", simulator.signingKey.teamID,
            ])
    }

    func book(_ token: String, in environment: APNsSimulator.Environment = .production) throws {
        try simulator.add(APNsSimulator.Device(token: token, topic: LiveServer.app, environment: environment))
    }

    func client(_ state: String = "app") throws -> PushClient {
        try PushClient(
            configuration: .init(
                server: server.address, app: LiveServer.app, clientKey: clientKey,
                storageDirectory: server.directory + "/" + state,
                backOff: .init(initial: .milliseconds(50), maximum: .milliseconds(200))))
    }

    static func shown(_ simulator: APNsSimulator, _ token: String) -> Int {
        simulator.device(token, in: .production)?.shown.count ?? 0
    }

    /// The output of `carillon devices show` for it, once that contains a text.
    func shows(_ part: String, _ device: PushDevice) async throws {
        let id = try #require(device.deviceID)
        let arguments = ["devices", "show", id, "--server", server.address, "--key", admin, "--json"]
        try await eventually { try await run(arguments).lines.last?.contains(part) == true }
    }

    func operate(_ verb: String, _ device: PushDevice) async throws {
        let id = try #require(device.deviceID)
        _ = try await run(["devices", verb, id, "--server", server.address, "--key", admin])
    }
}
