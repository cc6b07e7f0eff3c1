import CarillonAPNs
import Crypto
import Foundation

/// Values that many tests start with.
enum Samples {
    static let token = String(repeating: "0123456789abcdef", count: 4)

    static let keyPEM = P256.Signing.PrivateKey().pemRepresentation

    static func credentials() throws -> APNsCredentials {
        .token(try APNsTokenKey(pem: keyPEM, keyID: "ABCDEFGHIJ", teamID: "KLMNOPQRST"))
    }

    /// The clocks of the machine, as a time source that no other client has. A client with it has a provider token of its own.
    static func clocks() -> APNsTimeSource {
        let start = ContinuousClock.now
        return APNsTimeSource(
            elapsed: { ContinuousClock.now - start }, secondsSince1970: { Int64(Date().timeIntervalSince1970) })
    }

    /// Tokens that contain their number.
    static func tokens(_ count: Int) -> [String] { (0..<count).map { String(format: "%064x", $0) } }

    static func number(_ token: String) -> Int { Int(token, radix: 16) ?? -1 }
}

/// A scripted server, and a client that trusts it.
struct Stage {
    let certificates: TestCertificates
    let server: ScriptedServer
    let client: APNsClient

    init(
        _ options: ScriptedServer.Options = .init(), credentials: APNsCredentials? = nil,
        configure: (inout APNsClient.Configuration) -> Void,
        script: @escaping ScriptedServer.Script = { $0.accept($1) }
    ) async throws {
        certificates = try TestCertificates()
        server = try await ScriptedServer(tls: certificates.serverContext(), options: options, script: script)
        var configuration = APNsClient.Configuration(
            credentials: try credentials ?? Samples.credentials(), bundleID: "com.example.app",
            environment: .custom(host: "localhost", port: server.port))
        configuration.trustRoots = certificates.authorityPEM
        configuration.timeout = .seconds(60)
        configuration.timeSource = Samples.clocks()
        configure(&configuration)
        client = try APNsClient(configuration)
    }

    init(
        _ options: ScriptedServer.Options = .init(), credentials: APNsCredentials? = nil,
        script: @escaping ScriptedServer.Script = { $0.accept($1) }
    ) async throws {
        try await self.init(options, credentials: credentials, configure: { _ in }, script: script)
    }

    func end() async throws {
        await client.shutDown(drains: false)
        try await server.close()
    }
}
