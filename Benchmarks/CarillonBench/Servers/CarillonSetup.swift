import Foundation
import NIOCore

/// Makes data directories with registered devices, and starts Carillon with them.
struct CarillonSetup: Sendable {
    let executable: String
    let scratch: ScratchDirectory

    static let app = "com.example.bench"

    /// Makes a new data directory with the given number of devices, each with a channel.
    func register(_ count: Int, data name: String, withPushTokens: Bool = false) async throws -> [Device] {
        try await registering(count, data: name, withPushTokens: withPushTokens).devices
    }

    /// Makes a new data directory, and returns the registrations per second as well.
    func registering(
        _ count: Int, data name: String, withPushTokens: Bool = false
    ) async throws -> (devices: [Device], perSecond: Double) {
        let (server, key) = try await startEmpty(data: name)
        let registrar = DeviceRegistrar(
            address: server.address, key: key, app: Self.app, withPushTokens: withPushTokens)
        do {
            let start = nanoseconds()
            let devices = try await registrar.register(count)
            let seconds = Double(nanoseconds() - start) / 1e9
            await server.process.stop()
            return (devices, Double(count) / seconds)
        } catch {
            await server.process.stop()
            throw error
        }
    }

    /// Starts the server with a new data directory, and returns an API key that can register devices.
    func startEmpty(data name: String) async throws -> (server: CarillonUnderTest, clientKey: String) {
        let data = scratch.file(name)
        let log = scratch.file("\(name)-command.log")
        _ = try await ServerProcess.output(executable, ["apps", "create", Self.app, "--data", data, "--init"], log: log)
        let printed = try await ServerProcess.output(
            executable, ["keys", "create", "--role", "client", "--app", Self.app, "--data", data, "--json"], log: log)
        guard let key = ByteBuffer(string: printed).text(after: "\"secret\":\"") else {
            throw NotMeasured("carillon keys create printed no secret")
        }
        return (try await start(data: name, devices: []), String(buffer: key))
    }

    /// Starts the server, and waits until it reports that it is ready.
    func start(
        data name: String, devices: [Device], isAnonymous: Bool = false, withMetrics: Bool = false
    ) async throws -> CarillonUnderTest {
        let server = try launch(data: name, devices: devices, isAnonymous: isAnonymous, withMetrics: withMetrics)
        try await waitUntilReady(server)
        return server
    }

    func launch(
        data name: String, devices: [Device], isAnonymous: Bool = false, withMetrics: Bool = false, metricsPort: Int? = nil,
        more: [String] = [], settings: [String: String] = [:]
    ) throws -> CarillonUnderTest {
        let port = try freePort()
        var arguments =
            [
                "serve", "--data", scratch.file(name), "--listen", "127.0.0.1:\(port)", "--public-url",
                "http://127.0.0.1:\(port)", "--log", "warning", "--config", try configuration(settings),
            ] + more
        if isAnonymous { arguments.append("--anonymous-devices") }
        if let port = try metricsPort ?? (withMetrics ? freePort() : nil) {
            arguments += ["--metrics-listen", String(port)]
        }
        let process = try ServerProcess.start(executable, arguments, log: scratch.file("\(name)-serve.log"))
        return CarillonUnderTest(
            process: process, address: try SocketAddress(ipAddress: "127.0.0.1", port: port), devices: devices,
            isAnonymous: isAnonymous)
    }

    /// Rates are counted as usual, but their limits are never reached: the load comes from one address, and a part of it uses
    /// one channel.
    private func configuration(_ settings: [String: String]) throws -> String {
        let file = scratch.file("carillon.json")
        let rates = ["channel", "device", "app", "item", "registration", "address"].map {
            "\"\($0)-rate\": \"1000000:10000000\""
        }
        let others = settings.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \"\($0.value)\"" }
        try Data("{\((rates + others).joined(separator: ", "))}".utf8).write(to: URL(fileURLWithPath: file))
        return file
    }

    func waitUntilReady(_ server: CarillonUnderTest) async throws {
        try await Patience.ask(HTTPRequest.bytes("GET", "/health/ready"), server)
    }
}
