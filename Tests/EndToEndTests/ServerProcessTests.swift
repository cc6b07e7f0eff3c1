import Foundation
import NIOHTTP1
import TestSupport
import Testing

/// The process of a server, as a service manager sees it.
@Suite(.timeLimit(.minutes(5)))
struct ServerProcessTests {
    @Test func `SIGHUP is logged, and the server continues`() async throws {
        let server = try await LiveServer.start()
        for _ in 0..<2 {
            let count = server.program.output.count
            server.program.signal(SIGHUP)
            _ = try await server.program.line(from: count) { $0.contains("SIGHUP") ? true : nil }
        }
        #expect(try await server.request(.GET, "/health/ready").status == 200)
        server.program.signal(SIGTERM)
        #expect(await server.program.exitStatus() == 0)
    }

    @Test func `a server that should be sent work is healthy, and one that is gone is not`() async throws {
        let server = try await LiveServer.start()
        for flags in [[], ["--live"]] {
            let (status, _) = try await run(["health", "--server", server.address] + flags)
            #expect(status == 0)
        }
        #expect(try await run(["health"], environment: ["CARILLON_SERVER": server.address]).status == 0)
        // A server that runs and cannot use its store.
        try FileManager.default.moveItem(atPath: server.directory, toPath: server.directory + "-moved")
        defer { try? FileManager.default.removeItem(atPath: server.directory + "-moved") }
        let unready = try await run(["health", "--server", server.address])
        #expect(unready.status == 1)
        #expect(unready.lines.count == 1 && unready.lines[0].contains("storage_unavailable"), "\(unready.lines)")
        #expect(try await run(["health", "--live", "--server", server.address]).status == 0)
        server.program.signal(SIGKILL)
        _ = await server.program.exitStatus()
        let gone = try await run(["health", "--live", "--server", server.address])
        #expect(gone.status == 1)
        #expect(gone.lines.count == 1 && gone.lines[0].contains("cannot be reached"), "\(gone.lines)")
    }

    @Test func `a server on a Unix socket is healthy, and removes the socket at its end`() async throws {
        let directory = TemporaryDirectory()
        let socket = directory.path + "/socket"
        let program = try Program(
            Program.carillon,
            [
                "serve", "--data", directory.path + "/data", "--listen", "unix:\(socket)", "--public-url",
                "https://push.example.com",
            ])
        _ = try await program.line { $0.contains("serving") ? true : nil }
        #expect(try await run(["health", "--server", "unix:\(socket)"]).status == 0)
        program.signal(SIGTERM)
        #expect(await program.exitStatus() == 0)
        #expect(!FileManager.default.fileExists(atPath: socket))
        #expect(try await run(["health", "--server", "unix:\(socket)"]).status == 1)
    }

    @Test func `a service manager is notified that the process is ready, works and stops`() async throws {
        let directory = TemporaryDirectory()
        let receiver = try NotifyReceiver(directory.path + "/notify")
        let program = try Program(
            Program.carillon,
            ["serve", "--data", directory.path + "/data", "--listen", "127.0.0.1:\(try LiveServer.freePort())"],
            environment: ["NOTIFY_SOCKET": directory.path + "/notify", "WATCHDOG_USEC": "1000000"])
        var states: Set<String> = []
        while !states.isSuperset(of: ["READY=1", "WATCHDOG=1"]) { states.insert(try #require(await receiver.next())) }
        program.signal(SIGTERM)
        while !states.contains("STOPPING=1") { states.insert(try #require(await receiver.next())) }
        #expect(await program.exitStatus() == 0)
    }
}
