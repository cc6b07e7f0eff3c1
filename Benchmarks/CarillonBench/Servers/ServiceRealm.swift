import CarillonClient
import Foundation
import NIOCore

/// A data directory with two apps in one realm, so that devices of one app can call devices of the other.
struct ServiceRealm: Sendable {
    private let setup: CarillonSetup
    private let data: String
    private let signer = UserTokenSigner()
    private let clientKeys: [String: String]

    static let consumerApp = CarillonSetup.app
    static let providerApp = "com.example.files"
    private static let apps = [consumerApp, providerApp]

    /// Makes the directory. No server uses it yet.
    init(_ setup: CarillonSetup, data: String) async throws {
        self.setup = setup
        self.data = data
        let keySet = setup.scratch.file("\(data)-keys.json")
        try signer.keySet.write(toFile: keySet, atomically: true, encoding: .utf8)
        func run(_ arguments: [String]) async throws -> String {
            try await ServerProcess.output(
                setup.executable, arguments + ["--data", setup.scratch.file(data)],
                log: setup.scratch.file("\(data)-command.log"))
        }
        var clientKeys: [String: String] = [:]
        for app in Self.apps {
            _ = try await run(["apps", "create", app, "--init"])
            _ = try await run(["apps", "users", "set", app, "--jwks-file", keySet, "--algorithm", "EdDSA"])
            _ = try await run(["apps", "realm", "set", app, "bench"])
            let printed = try await run(["keys", "create", "--json", "--role", "client", "--app", app])
            guard let secret = ByteBuffer(string: printed).text(after: "\"secret\":\"") else {
                throw NotMeasured("carillon keys create printed no secret")
            }
            clientKeys[app] = String(buffer: secret)
        }
        self.clientKeys = clientKeys
    }

    /// Runs a server with the directory until the work is done. No rate limit of a device is reached.
    func serving<Value>(_ work: (CarillonUnderTest) async throws -> Value) async throws -> Value {
        let server = try setup.launch(
            data: data, devices: [], settings: ["service-request-rate": "1000000:10000000"])
        try await setup.waitUntilReady(server)
        do {
            let value = try await work(server)
            await server.process.stop()
            return value
        } catch {
            await server.process.stop()
            throw error
        }
    }

    func remove() {
        for name in [data] + Self.apps.map(storage) { setup.scratch.remove(name) }
    }

    // MARK: Devices

    /// Registers new devices of an app, one for each user.
    func register(_ users: [String], of app: String, on server: CarillonUnderTest) async throws -> [Device] {
        let registrar = DeviceRegistrar(
            address: server.address, key: clientKeys[app] ?? "", app: app, withChannels: false,
            userTokens: try users.map(token))
        return try await registrar.register(users.count)
    }

    /// Returns a connected client of an app, for a user.
    func client(of user: String, _ app: String, on server: CarillonUnderTest) async throws -> PushClient {
        let client = try PushClient(
            configuration: .init(
                server: "http://127.0.0.1:\(server.address.port ?? 0)", app: app, clientKey: clientKeys[app],
                storageDirectory: setup.scratch.file(storage(app))))
        try await client.device.setUser(try token(user))
        try client.start()
        try await client.channel("bench").ensureOpen(timeout: .seconds(20))
        let start = ContinuousClock.now
        while client.device.isUserPending {
            guard ContinuousClock.now - start < .seconds(20) else { throw NotMeasured("a client's user was not taken") }
            try await Task.sleep(for: .milliseconds(10))
        }
        return client
    }

    private func token(_ user: String) throws -> String { try signer.token(of: user, for: Self.apps) }

    private func storage(_ app: String) -> String { "\(data)-\(app)" }
}
