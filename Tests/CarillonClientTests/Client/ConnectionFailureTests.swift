import Foundation
import Logging
import TestSupport
import Testing

@testable import CarillonClient

/// The events that an app receives when its server cannot be reached, over real sockets.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionFailureTests {
    private let directory = TemporaryDirectory()
    private let lines = LogCatcher()

    private func client(at address: String) throws -> PushClient {
        try PushClient(
            configuration: .init(
                server: address, app: "com.example.app", clientKey: "client-key", storageDirectory: directory.path,
                logger: lines.logger, backOff: .init(initial: .milliseconds(5), maximum: .milliseconds(10))))
    }

    @Test func `opening within a limit throws the reason, and the channel opens when the server is there`() async throws {
        let server = try await ScriptedServer.startOnStablePort()
        try await server.stop()
        let client = try client(at: server.address)
        try client.start()
        // The first attempt can take longer than the limit.
        try await eventually { client.runner.failures.present != nil && !lines.warnings.isEmpty }
        let channel = try client.channel("presence")
        let error = await #expect(throws: PushError.self) {
            try await channel.ensureOpen(within: .milliseconds(300))
        }
        #expect(error?.code == .serverUnreachable)
        #expect(error?.message.contains("is not open after 300 ms. Cannot connect to \(server.address) ") == true)
        #expect(error?.message.contains("connection refused") == true)
        #expect(channel.state == .connecting)
        #expect(lines.warnings.count == 1, "\(lines.warnings)")
        #expect(lines.warnings.first?.contains("address=\(server.address) ") == true)

        let restarted = try await ScriptedServer.start(port: server.port)
        let opening = Task { try await channel.ensureOpen(within: .seconds(50)) }
        let (socket, _) = try await restarted.welcome()
        try await socket.acceptRegistration(token: "token")
        #expect(try await opening.value.token == "token")
        await client.stop()
    }

    @Test func `opening within a limit reports that the client does not run`() async throws {
        let channel = try client(at: "http://127.0.0.1:1").channel("presence")
        let error = await #expect(throws: PushError.self) { try await channel.ensureOpen(within: .milliseconds(10)) }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("does not run") == true)
    }

    @Test func `a task that is cancelled before the limit is cancelled`() async throws {
        let channel = try client(at: "http://127.0.0.1:1").channel("presence")
        let waiting = Task { try await channel.ensureOpen(within: .seconds(50)) }
        waiting.cancel()
        let error = await #expect(throws: PushError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
    }

    @Test func `a server that ends each connection before it accepts the device is reported once`() async throws {
        let server = try await ScriptedServer.start()
        let client = try client(at: server.address)
        try client.start()
        for _ in 0..<3 {
            let socket = try await server.nextSocket()
            _ = try await socket.receive()
            socket.drop()
        }
        while client.lastFailure == nil { await Task.yield() }
        #expect(client.lastFailure?.message.contains("before it accepted the device") == true)
        #expect(lines.warnings.count == 1, "\(lines.warnings)")
        await client.stop()
    }

    @Test func `the end of a connection after the server accepted the device is no failure`() async throws {
        let server = try await ScriptedServer.start()
        let client = try client(at: server.address)
        try client.start()
        for number in 1...3 {
            let (socket, _) = try await server.welcome()
            try await eventually { client.runner.failures.liveCount == number }
            socket.drop()
        }
        // The end of the third connection was seen.
        _ = try await server.welcome()
        #expect(lines.warnings.isEmpty, "\(lines.warnings)")
        #expect(client.runner.failures.present == nil)
        await client.stop()
    }

    @Test func `a logger that is not set writes warnings`() {
        let configuration = PushClient.Configuration(server: "http://h", app: "a", storageDirectory: "/s")
        #expect(configuration.logger.label == "carillon.client" && configuration.logger.logLevel == .warning)
        let store = AttachmentStore.Configuration(server: "http://h", bearer: "b", directory: "/s")
        #expect(store.logger.label == "carillon.attachments" && store.logger.logLevel == .warning)
    }
}
