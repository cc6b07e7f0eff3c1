import CarillonWire
import Foundation
import TestSupport
import Testing

/// The output of commands if a server cannot be reached.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionFailureCommandTests {
    private let directory = TemporaryDirectory()

    private func line(_ arguments: [String], _ prefix: String) async throws -> String {
        let program = try Program(Program.carillon, arguments)
        let line = try await program.line { $0.hasPrefix(prefix) ? $0 : nil }
        program.signal(SIGKILL)
        return line
    }

    @Test func `listen, attachments and services report why they cannot connect, and that they retry`() async throws {
        let server = "http://127.0.0.1:\(try LiveServer.freePort())"
        let file = directory.path + "/file"
        try Data("x".utf8).write(to: URL(filePath: file))
        let reach = ["--server", server, "--key", "k", "--state", directory.path + "/state"]
        let commands = [
            ["listen", "--app", "com.example.app", "--channel", "c"] + reach,
            ["attachments", "put", file, "--for", "senders"] + reach,
            ["services", "call", "com.example.echo/1.0/echo", "--of", "com.example.files", "--app", "com.example.app"]
                + reach,
            ["services", "provide", "--method", "com.example.echo/1.0/echo", "--app", "com.example.app"] + reach,
        ]
        for (number, command) in commands.enumerated() {
            let own = command.dropLast() + [directory.path + "/state-\(number)"]
            let line = try await line(Array(own), "carillon: cannot connect to \(server)")
            #expect(
                line.contains(": connection refused; retrying in ") && line.contains(" ms. Check that the server is running")
            )
        }
        let json = try await line(commands[0] + ["--json"], "{\"address\"")
        #expect(json.contains(#""event":"connectionFailed""#) && json.contains(#""reason":"connection refused""#))
    }

    @Test func `listen names the public URL when it is what cannot be reached`() async throws {
        let dead = try LiveServer.freePort()
        let port = try LiveServer.freePort()
        let data = directory.path + "/data"
        #expect(try await run(["apps", "create", LiveServer.app, "--data", data, "--init"]).status == 0)
        let key = try await LiveServer.key(.client, in: data)
        let server = try Program(
            Program.carillon,
            [
                "serve", "--data", data, "--listen", "127.0.0.1:\(port)", "--public-url", "http://127.0.0.1:\(dead)",
            ])
        _ = try await server.line { $0.contains("serving") ? true : nil }
        let address = "http://127.0.0.1:\(port)"
        let line = try await line(
            [
                "listen", "--server", address, "--key", key, "--app", LiveServer.app, "--channel", "c", "--state",
                directory.path + "/app",
            ], "carillon: cannot connect to ws://127.0.0.1:\(dead)/: connection refused")
        #expect(line.contains("The server at \(address) gave this address; its public-url must be"))
        server.signal(SIGTERM)
        _ = await server.exitStatus()
    }

    @Test func `a port that is taken is named in a sentence`() async throws {
        let server = try await LiveServer.start()
        let data = directory.path + "/data"
        #expect(try await run(["apps", "create", LiveServer.app, "--data", data, "--init"]).status == 0)
        let (status, lines) = try await run(["serve", "--data", data, "--listen", "127.0.0.1:\(server.port)"])
        #expect(status == 69)
        let text = lines.joined(separator: "\n")
        #expect(text.contains("cannot listen on 127.0.0.1:\(server.port): the address is in use"), "\(text)")
        #expect(!text.contains("errno"), "\(text)")
    }
}
