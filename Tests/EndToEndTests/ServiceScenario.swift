import CarillonClient
import CarillonWire
import Crypto
import Foundation
import NIOHTTP1
import TestSupport
import Testing

/// The real executable with two apps that have the same users, and their clients.
final class ServiceScenario {
    static let files = "com.example.files"
    static let transfer = ServiceMethod("com.good.gdservice.transfer-file", "1.0.0.0", "transferFile")

    let server: LiveServer
    private var keys: [String: String] = [:]
    let admin: String
    private let signer = TokenSigner.eddsa(Curve25519.Signing.PrivateKey())
    private var count = 0

    init() async throws {
        let server = try await LiveServer.start()
        self.server = server
        admin = try await server.whileStopped { directory in try await LiveServer.key(.admin, in: directory) }
        let jwks = server.directory + "/jwks.json"
        try Data("{\"keys\":[\(try signer.jwk("one"))]}".utf8).write(to: URL(filePath: jwks))
        let reach = ["--server", server.address, "--key", admin]
        #expect(try await run(["apps", "create", Self.files] + reach).status == 0)
        for app in [LiveServer.app, Self.files] {
            let arguments = ["apps", "users", "set", app, "--jwks-file", jwks, "--algorithm", "EdDSA"]
            #expect(try await run(arguments + reach).status == 0)
            let made = try await server.request(
                .POST, "/v1/keys", key: admin, body: #"{"role":"client","app":"\#(app)"}"#)
            struct Made: Decodable { var secret: String }
            keys[app] = try JSONDecoder().decode(Made.self, from: Data(made.text.utf8)).secret
            #expect(try await run(["apps", "realm", "set", app, "house"] + reach).status == 0)
        }
    }

    private func token(_ user: String, _ app: String) throws -> String {
        let expiry = Int(Date().timeIntervalSince1970) + 600
        return try signer.token(
            #"{"sub":"\#(user)","aud":"\#(app)","exp":\#(expiry)}"#, header: ["kid": "\"one\""])
    }

    /// A client that runs, of a user, with a directory of its own or a given one.
    ///
    /// - Parameter prepare: Called before the client starts.
    func client(
        _ app: String = LiveServer.app, of user: String? = "ada", in directory: String? = nil, local: String? = nil,
        prepare: (PushClient) async throws -> Void = { _ in }
    ) async throws -> PushClient {
        count += 1
        let client = try open(
            .init(
                server: server.address, app: app, clientKey: keys[app],
                storageDirectory: directory ?? server.directory + "/client-\(count)", localDirectory: local,
                backOff: .init(initial: .milliseconds(20), maximum: .milliseconds(200))))
        if let user { try await client.device.setUser(token(user, app)) }
        try await prepare(client)
        try client.start()
        _ = try await client.channel("ready").ensureOpen()
        try await eventually { !client.device.isUserPending }
        return client
    }

    /// Makes a client, also after another one that had the same storage: on a busy machine its store can stay open for some seconds.
    private func open(_ configuration: PushClient.Configuration) throws -> PushClient {
        for _ in 0..<10 {
            do throws(PushError) {
                return try PushClient(configuration: configuration)
            } catch {
                guard error.code == .storageInUse else { throw error }
            }
        }
        return try PushClient(configuration: configuration)
    }

    /// The options of a `carillon services` command, as an install of an app that belongs to a user.
    func options(_ app: String, of user: String = "ada", state: String) throws -> [String] {
        [
            "--app", app, "--state", state, "--server", server.address, "--key", keys[app] ?? "", "--user-token",
            try token(user, app), "--json",
        ]
    }

    func signIn(_ user: String, on client: PushClient, of app: String) async throws {
        try await client.device.setUser(token(user, app))
        try await eventually { !client.device.isUserPending }
    }

    /// A file with some content, under a name of its own.
    func file(_ name: String, _ content: Data) throws -> String {
        count += 1
        let directory = server.directory + "/files-\(count)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try content.write(to: URL(filePath: "\(directory)/\(name)"))
        return "\(directory)/\(name)"
    }

    func found(_ app: String, by client: PushClient) async throws {
        let deadline = ContinuousClock.now + .seconds(50)
        while ContinuousClock.now < deadline {
            if try await client.serviceClient.providers().contains(where: { $0.application.app == app }) { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("\(app) was not found")
    }

    /// Returns when the server has the given number of files, and not before.
    func hasFiles(_ wanted: Int) async throws {
        let directory = server.directory + "/attachments"
        try await eventually {
            let names = FileManager.default.enumerator(atPath: directory)?.allObjects as? [String]
            return (names ?? []).count { $0.split(separator: "/").count == 3 } == wanted
        }
    }
}
