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
    let admin: String

    init() async throws {
        var configuration = APNsSimulator.Configuration(ports: [.init(.push, .production)])
        configuration.dataDirectory = try TemporaryDirectory.make()
        simulator = try APNsSimulator(configuration)
        try await simulator.start()
        let files = try #require(configuration.dataDirectory)
        let environment = [
            "CARILLON_KEY_FILE": files + "/key-file", "CARILLON_APNS_CA": files + "/authority.pem",
            "CARILLON_APNS_PRODUCTION": "localhost:\(simulator.port(.push, .production) ?? 0)",
        ]
        server = try await LiveServer.start(environment: environment)
        (clientKey, admin) = try await server.whileStopped { directory in
            let client = try await LiveServer.key(.client, in: directory, environment: environment)
            return (client, try await LiveServer.key(.admin, in: directory, environment: environment))
        }
        _ = try await run(
            [
                "apps", "credentials", "set", LiveServer.app, "--server", server.address, "--key", admin, "--p8",
                files + "/AuthKey_\(simulator.signingKey.id).p8", "--team-id", simulator.signingKey.teamID,
            ])
    }

    func book(_ token: String) throws {
        try simulator.add(
            APNsSimulator.Device(token: token, topic: LiveServer.app, environment: .production))
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

    /// What `carillon devices show` prints of it, once that contains something.
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
