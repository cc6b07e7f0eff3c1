import ArgumentParser
import CarillonAPNs
import Foundation
import Logging

/// The simulator's address, and the settings of its client.
struct SimulatorOptions: ParsableArguments {
    @Option(help: "The port of localhost for pushes.") var port: Int
    @Option(help: "The simulator's data directory, with its authority and its signing key.") var data: String
    @Option(help: "The length of a payload in bytes.") var payload = 193

    /// Returns the client's default configuration with the simulator's address and authority, and with the largest number of
    /// connections.
    func configuration(connections: Int = 1) throws -> APNsClient.Configuration {
        var configuration = APNsClient.Configuration(
            credentials: try .token(p8: "\(data)/AuthKey_SIMULATED1.p8", keyID: "SIMULATED1", teamID: "SIMTEAM001"),
            bundleID: "com.example.bench", environment: .custom(host: "localhost", port: port))
        configuration.trustRoots = try String(contentsOfFile: "\(data)/authority.pem", encoding: .utf8)
        configuration.pool.maximum = connections
        configuration.logger = Logger(label: "apns-load", factory: { _ in SwiftLogNoOpLogHandler() })
        return configuration
    }
}
