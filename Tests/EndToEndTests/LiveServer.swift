import AsyncHTTPClient
import CarillonWire
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization
import TestSupport

/// The real executable, serving from a directory of its own.
final class LiveServer {
    static let app = "com.example.app"

    let directory: String
    let port: Int
    private(set) var program: Program
    private let publicAddress: String
    private let environment: [String: String]
    private let secrets = UsedSecrets()

    var address: String { "http://127.0.0.1:\(port)" }

    private init(
        directory: String, port: Int, publicAddress: String, program: Program, environment: [String: String]
    ) {
        self.directory = directory
        self.port = port
        self.publicAddress = publicAddress
        self.program = program
        self.environment = environment
    }

    /// Makes a data directory with one app, and serves it.
    ///
    /// - Parameter publicAddress: Returns the address that clients receive, for a port. Without it, they receive the server's
    ///   own.
    static func start(
        environment: [String: String] = [:], publicAddress: ((_ port: Int) async throws -> String)? = nil
    ) async throws -> LiveServer {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)").path
        _ = try await run(["apps", "create", app, "--data", directory, "--init"], environment: environment)
        let port = try freePort()
        let address = try await publicAddress?(port) ?? "http://127.0.0.1:\(port)"
        let program = try launch(directory, port, address, environment)
        let server = LiveServer(
            directory: directory, port: port, publicAddress: address, program: program, environment: environment)
        try await server.awaitReadiness()
        return server
    }

    deinit {
        secrets.check(program.output)
        program.signal(SIGKILL)
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The secret of a new key, made while the server does not run.
    /// A key of a client, for files that do not import the kinds of keys.
    static func clientKey(in directory: String) async throws -> String { try await key(.client, in: directory) }

    static func key(
        _ role: KeyRole, in directory: String, environment: [String: String] = [:]
    ) async throws -> String {
        var arguments = ["keys", "create", "--role", role.rawValue, "--data", directory, "--json"]
        if role != .admin { arguments += ["--app", app] }
        let (_, lines) = try await run(arguments, environment: environment)
        struct Made: Decodable { var secret: String }
        return try JSONDecoder().decode(Made.self, from: Data((lines.last ?? "").utf8)).secret
    }

    /// Stops the server, does something with its directory, and serves again.
    func whileStopped<Value>(signal: Int32 = SIGTERM, _ work: (String) async throws -> Value) async throws -> Value {
        program.signal(signal)
        _ = await program.exitStatus()
        secrets.check(program.output)
        let value = try await work(directory)
        program = try Self.launch(directory, port, publicAddress, environment)
        try await awaitReadiness()
        return value
    }

    private static func launch(
        _ directory: String, _ port: Int, _ publicAddress: String, _ environment: [String: String]
    ) throws -> Program {
        try Program(
            Program.carillon,
            ["serve", "--data", directory, "--listen", "127.0.0.1:\(port)", "--public-url", publicAddress]
                + TestHomes.options,
            environment: environment)
    }

    private func awaitReadiness() async throws {
        _ = try await program.line { $0.contains("serving") ? true : nil }
    }

    /// A port that was free a moment ago, and that no other test receives.
    static func freePort() throws -> Int {
        try Program.launching.withLock { _ in try FreePort.next() }
    }

    // MARK: Requests

    struct Answer {
        var status: Int
        var headers: HTTPHeaders
        var text: String
    }

    func request(
        _ method: HTTPMethod, _ path: String, key: String? = nil, headers: [String: String] = [:], body: String? = nil,
        bytes: [UInt8]? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: path.contains("://") ? path : address + path)
        request.method = method
        if let key {
            request.headers.add(name: "authorization", value: "Bearer \(key)")
            secrets.note(key)
        }
        if path.contains("/push/") { secrets.note(path) }
        if let body { secrets.noteMembers(of: body) }
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let bytes = bytes ?? body.map({ Array($0.utf8) }) { request.body = .bytes(bytes) }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        let bytes = try await response.body.collect(upTo: 1 << 22)
        let text = String(buffer: bytes)
        secrets.noteMembers(of: text)
        return Answer(status: Int(response.status.code), headers: response.headers, text: text)
    }

    /// Sends a message that may wait a minute; answers its address.
    func send(_ text: String, to endpoint: String, ttl: Int = 60) async throws -> (status: Int, location: String) {
        let answer = try await request(
            .POST, endpoint, headers: ["TTL": String(ttl), "Content-Encoding": "identity"], body: text)
        return (answer.status, answer.headers.first(name: "location") ?? "")
    }

    /// The outcome of a message, when there is one: a device's report arrives after a moment.
    func outcome(of location: String) async throws -> String {
        while true {
            let answer = try await request(.GET, location)
            let message = try JSONDecoder().decode(MessageBody.self, from: Data(answer.text.utf8))
            if let outcome = message.outcome { return outcome }
        }
    }
}
