import Foundation
import NIOCore

/// Carillon's APNs simulator in its own process. It accepts every push, on one thread.
struct SimulatedAPNs: Sendable {
    let process: ServerProcess
    /// The data directory of the simulator, with the authority and the signing key.
    let data: String
    let port: Int
    private let control: SocketAddress

    /// The behaviour towards new connections.
    struct Conditions: Encodable, Sendable {
        var streamWindow = 65_535
        var connectionWindow = 65_535
        var roundTripMilliseconds = 0
    }

    /// The simulator's report about one connection.
    struct Connection: Decodable, Sendable {
        var number: Int
        var accepted: Int
        var headerBlockBytes: Int
    }

    static func start(_ executable: String, _ scratch: ScratchDirectory) async throws -> SimulatedAPNs {
        let data = scratch.file("simulator")
        let process = try ServerProcess.start(
            executable,
            [
                "apns", "simulate", "--accept-all", "--json", "--data", data, "--listen", "127.0.0.1:0", "--manage", "none",
                "--http", "127.0.0.1:0",
            ], log: scratch.file("simulator.log"))
        let start = ContinuousClock.now
        while !process.printed.contains("\"ready\"") {
            guard ContinuousClock.now - start < .seconds(20) else {
                await process.stop()
                throw NotMeasured("the simulator did not become ready: \(process.printed.suffix(300))")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        guard let port = listening("push", process.printed), let controlPort = listening("control", process.printed) else {
            await process.stop()
            throw NotMeasured("the simulator did not say where it listens: \(process.printed.suffix(300))")
        }
        return SimulatedAPNs(
            process: process, data: data, port: port,
            control: try SocketAddress(ipAddress: "127.0.0.1", port: controlPort))
    }

    func setConditions(_ conditions: Conditions) async throws {
        _ = try await ask("PATCH", "/api/conditions", ByteBuffer(bytes: JSONEncoder().encode(conditions)))
    }

    /// Returns the connections of the simulator, the oldest first.
    func connections() async throws -> [Connection] {
        let body = try await ask("GET", "/api/connections")
        return try JSONDecoder().decode([Connection].self, from: Data(body.readableBytesView))
    }

    /// Returns a provider token that the simulator accepts, signed like any other.
    func providerToken() async throws -> String {
        String(buffer: try await ask("GET", "/api/provider-token"))
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func ask(_ method: String, _ path: String, _ body: ByteBuffer? = nil) async throws -> ByteBuffer {
        let answer = try await HTTPConnection.exchange(HTTPRequest.bytes(method, path, body: body), control)
        guard answer.status == 200 else { throw NotMeasured("the simulator answered \(path) with \(answer.description)") }
        return answer.body
    }

    private struct Announcement: Decodable {
        var service: String?
        var port: Int?
    }

    private static func listening(_ service: String, _ printed: String) -> Int? {
        for line in printed.split(separator: "\n") {
            let said = try? JSONDecoder().decode(Announcement.self, from: Data(line.utf8))
            if let said, said.service == service { return said.port }
        }
        return nil
    }
}
