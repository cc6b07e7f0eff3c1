import CarillonWire
import Foundation
import TestSupport
import Testing

/// The real executable, used as a person would use it.
@Suite(.timeLimit(.minutes(5)))
struct CommandLineTests {
    private struct Line: Decodable {
        var event: String?
        var token: String?
        var endpoint: String?
        var host: String?
        var id: String?
        var body: String?
        var bodyBase64: String?
        var outcome: String?
    }

    private func line(_ event: String, _ text: String) -> Line? {
        guard let line = try? JSONDecoder().decode(Line.self, from: Data(text.utf8)), line.event == event else { return nil }
        return line
    }

    private func listen(_ server: LiveServer, key: String, state: String, _ more: [String] = []) throws -> Program {
        try Program(
            Program.carillon,
            [
                "listen", "--server", server.address, "--key", key, "--app", LiveServer.app, "--channel",
                "com.example.app.presence", "--state", state, "--json",
            ] + more)
    }

    @Test
    func
        `the demo shows a push, the loss and the return of a backend, an update, a service, a wake and a price`()
        async throws
    {
        let (status, lines) = try await run(["demo", "--once", "--listen", "127.0.0.1:\(try LiveServer.freePort())"])
        #expect(status == 0)
        let text = lines.joined(separator: "\n")
        for word in ["sent", "offered", "acknowledged", "accepted"] {
            #expect(text.contains(" ms  \(word)"), "the demo printed:\n\(text)")
        }
        let watched = lines.compactMap { $0.firstMatch(of: /^  (pingFailed \d+|recovered):/).map { String($0.1) } }
        #expect(watched == ["pingFailed 601", "pingFailed 605", "recovered"], "the demo printed:\n\(text)")
        for line in ["the app fetches pump-7 again", "for the north: 1 done", "for the south: no device"] {
            #expect(lines.contains("  " + line), "the demo printed:\n\(text)")
        }
        for line in [
            "found         Files 1.0", "received      the app for files has the complete file report.pdf",
            "answered      after ",
        ] {
            #expect(lines.count { $0.hasPrefix("  " + line) } == 1, "the demo printed:\n\(text)")
        }
        let slept = text.split(separator: "The phone sleeps").last ?? ""
        for word in ["sent", "woken", "fetched", "acknowledged"] {
            #expect(slept.contains(" ms  \(word)"), "the demo printed:\n\(text)")
        }
        #expect(
            lines.filter { $0.contains(" ms  shown ") && $0.contains("now at €100.50") }.count == 1,
            "the demo printed:\n\(text)")
    }

    @Test func `the demo runs again over its own data`() async throws {
        let directory = try TemporaryDirectory.make()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let address = "127.0.0.1:\(try LiveServer.freePort())"
        for _ in 0..<2 {
            let (status, lines) = try await run(["demo", "--once", "--data", directory, "--listen", address])
            #expect(status == 0, "\(lines)")
            #expect(lines.contains { $0.contains(" ms  woken") })
        }
    }

    @Test func `a sent message is received and acknowledged, and its sender is notified`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let state = server.directory + "/app"
        let listener = try listen(server, key: key, state: state)
        let opened = try await listener.line { line("opened", $0) }
        let endpoint = try #require(opened.endpoint)
        #expect(endpoint == "\(server.address)/push/\(try #require(opened.token))")
        #expect(opened.host == "127.0.0.1")

        let (status, lines) = try await run(["send", endpoint, "Grüße", "--wait", "--json"])
        #expect(status == 0)
        #expect(lines.compactMap { line("final", $0) }.first?.outcome == "acknowledged")
        let message = try await listener.line { line("message", $0) }
        #expect(message.body == "Grüße")
        #expect(lines.compactMap { line("accepted", $0) }.first?.id == message.id)

        let file = server.directory + "/body"
        try Data([0xFF, 0x00, 0xFE]).write(to: URL(fileURLWithPath: file))
        #expect(try await run(["send", endpoint, "--file", file, "--wait"]).status == 0)
        let bytes = try await listener.line { line("message", $0).flatMap { $0.bodyBase64 } }
        #expect(bytes == "_wD-")

        listener.signal(SIGINT)
        #expect(await listener.exitStatus() == 130)
        #expect(try await run(["send", endpoint, "while away"]).status == 0)
        let again = try listen(server, key: key, state: state)
        #expect(try await again.line { line("opened", $0) }.token == opened.token)
        #expect(try await again.line { line("message", $0) }.body == "while away")
        again.signal(SIGTERM)
        #expect(await again.exitStatus() == 0)

        let closing = try listen(server, key: key, state: state, ["--close"])
        #expect(try await closing.line { line("closed", $0) }.token == opened.token)
        #expect(await closing.exitStatus() == 0)
        let (refused, words) = try await run(["send", endpoint, "too late"])
        #expect(refused == 65)
        #expect(words.last?.contains("token_gone") == true)
    }

    @Test func `a message with another outcome is reported with its exit code`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let listener = try listen(server, key: key, state: server.directory + "/app")
        let endpoint = try #require(try await listener.line { line("opened", $0) }.endpoint)
        listener.signal(SIGINT)
        _ = await listener.exitStatus()
        let (status, lines) = try await run(["send", endpoint, "now or never", "--ttl", "0", "--wait"])
        #expect(status == 3, "it printed: \(lines)")
    }

    @Test func `apps and keys are kept, by the directory or by the server`() async throws {
        let server = try await LiveServer.start()
        let admin = try await server.whileStopped { try await LiveServer.key(.admin, in: $0) }
        let remote = ["--server", server.address, "--key", admin, "--json"]
        #expect(try await run(["apps", "create", "com.example.other"] + remote).status == 0)
        #expect(try await run(["apps", "create", "com.example.other"] + remote).status == 65)
        #expect(try await run(["apps", "list"] + remote).lines.contains { $0.contains("com.example.other") })
        let made = try await run(["keys", "create", "--role", "client", "--app", "com.example.other"] + remote)
        struct Key: Decodable { var id: String }
        let id = try JSONDecoder().decode(Key.self, from: Data((made.lines.last ?? "").utf8)).id
        let listed = try await run(["keys", "list"] + remote).lines
        #expect(listed.contains { $0.contains(id) })
        #expect(!listed.contains { $0.contains("secret") })
        #expect(try await run(["keys", "rotate", id] + remote).status == 0)
        #expect(try await run(["keys", "revoke", id] + remote).status == 0)
        #expect(try await run(["keys", "revoke", id] + remote).status == 65)
        #expect(try await run(["apps", "delete", "com.example.other"] + remote).status == 0)
        #expect(try await run(["apps", "list", "--server", server.address, "--key", "nonsense"]).status == 77)
        let (locked, words) = try await run(["apps", "list", "--data", server.directory])
        #expect(locked == 73)
        #expect(words.last?.contains("--server") == true)
    }

    @Test func `a message forges no line of the output`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let listener = try Program(
            Program.carillon,
            ["listen", "--app", LiveServer.app, "--channel", "c", "--state", server.directory + "/app"],
            environment: ["CARILLON_SERVER": server.address, "CARILLON_KEY": key])
        let endpoint = try await listener.line { line in line.hasPrefix("opened  ") ? String(line.dropFirst(8)) : nil }
        let forged = "hello\nmessage  m  forged\u{1b}[1A"
        #expect(try await run(["send", endpoint, "-"], input: forged).status == 0)
        let line = try await listener.line { $0.contains("hello") ? $0 : nil }
        #expect(line.hasSuffix(#"  hello\nmessage  m  forged\u001b[1A"#))
        #expect(try await run(["send", endpoint], input: "piped").status == 0)
        #expect(try await listener.line { $0.contains("piped") ? $0 : nil }.hasSuffix("  piped"))
        let (status, lines) = try await run(["send", endpoint])
        #expect(status == 64, "\(lines)")
        listener.signal(SIGINT)
        #expect(await listener.exitStatus() == 130)
        #expect(listener.output.last?.contains("stopped listening") == true)
        // With its spaces: an identifier may begin with any letter.
        #expect(!listener.output.contains { $0.hasPrefix("message  m  ") })
    }

    @Test func `a directory without data is reported, and stays unchanged`() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)").path
        let commands = [
            ["apps", "list"], ["apps", "create", "com.example.app"], ["keys", "list"],
            ["keys", "create", "--role", "admin"], ["backup", directory + ".backup"],
        ]
        for command in commands {
            let (status, lines) = try await run(command, environment: ["CARILLON_DATA": directory])
            #expect(status == 73, "\(command): \(lines)")
            #expect(lines.first?.contains("contains no data") == true, "\(command): \(lines)")
            #expect(!FileManager.default.fileExists(atPath: directory))
        }
        #expect(try await run(["keys", "create", "--role", "admin", "--data", directory, "--init"]).status == 0)
        #expect(try await run(["apps", "list"], environment: ["CARILLON_DATA": directory]).status == 0)
        try FileManager.default.removeItem(atPath: directory)
    }

    @Test func `a backup of a running server becomes another server with the same data`() async throws {
        let server = try await LiveServer.start()
        let backup = server.directory + ".backup"
        let restored = server.directory + ".restored"
        defer { for path in [backup, restored] { try? FileManager.default.removeItem(atPath: path) } }
        let (status, lines) = try await run(["backup", backup, "--data", server.directory])
        #expect(status == 0, "\(lines)")
        #expect(try await run(["backup", backup, "--data", server.directory]).status == 73)
        #expect(try await run(["restore", backup, "--data", restored, "--json"]).status == 0)
        #expect(try await run(["apps", "list", "--data", restored]).lines.contains { $0.contains(LiveServer.app) })
        #expect(try await run(["restore", backup, "--data", restored]).status == 73)
        #expect(try await run(["restore", backup, "--data", server.directory]).status == 73)
        #expect(try await run(["restore", "/nowhere", "--data", restored + "2"]).status == 66)
    }

    @Test func `Ctrl-C ends a wait, and the demo, with a sentence`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let state = server.directory + "/app"
        let listener = try listen(server, key: key, state: state)
        let endpoint = try #require(try await listener.line { line("opened", $0) }.endpoint)
        listener.signal(SIGTERM)
        #expect(await listener.exitStatus() == 0)
        let waiting = try Program(Program.carillon, ["send", endpoint, "hello", "--wait"])
        _ = try await waiting.line { $0.hasPrefix("accepted") ? true : nil }
        waiting.signal(SIGINT)
        #expect(await waiting.exitStatus() == 130)
        #expect(waiting.output.last == "carillon: interrupted; an accepted message stays accepted")

        let demo = try Program(Program.carillon, ["demo", "--listen", "127.0.0.1:\(try LiveServer.freePort())"])
        _ = try await demo.line { $0.contains("The server runs until Ctrl-C") ? true : nil }
        demo.signal(SIGINT)
        #expect(await demo.exitStatus() == 130)
        #expect(demo.output.last?.contains("the demo ended") == true)
    }

    @Test func `an IPv6 address makes a right public URL, and an address of nobody warns`() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for (host, warns) in [("[::1]", false), ("0.0.0.0", true)] {
            let port = try LiveServer.freePort()
            let server = try Program(Program.carillon, ["serve", "--data", directory, "--listen", "\(host):\(port)"])
            let serving = try await server.line { $0.contains("serving") ? $0 : nil }
            #expect(serving.contains("public-url=http://\(host):\(port)"), "\(serving)")
            let warned = server.output.contains { $0.contains("no other machine can reach") }
            #expect(warned == warns)
            server.signal(SIGINT)
            #expect(await server.exitStatus() == 0)
        }
    }

    @Test func `an unknown variable keeps a server from starting`() async throws {
        let (status, lines) = try await run(
            ["serve", "--data", "/nowhere"], environment: ["CARILLON_PUBLIC_ULR": "https://push.example.com"])
        #expect(status == 64)
        #expect(lines.last?.contains("CARILLON_PUBLIC_URL?") == true)
    }

    @Test func `the command prints its version`() async throws {
        let (status, lines) = try await run(["--version"])
        #expect(status == 0)
        #expect(lines.first?.wholeMatch(of: /\d+\.\d+\.\d+/) != nil)
    }

    struct Fault: Sendable {
        var arguments: [String]
        var status: Int32
        init(_ status: Int32, _ arguments: String...) {
            self.arguments = arguments
            self.status = status
        }
    }

    static let faults = [
        Fault(69, "send", "http://127.0.0.1:9/push/x", "hello"),
        Fault(69, "apps", "list", "--server", "http://127.0.0.1:9", "--key", "x"),
        Fault(64, "apps", "list"), Fault(64, "listen", "--app", "a", "--channel", "c", "--state", "/tmp/x"),
        Fault(64, "backup", "/tmp/x"), Fault(64, "restore", "/tmp/x"), Fault(0, "backup", "--help"),
        Fault(64, "send"),
        Fault(64, "send", "not-an-address", "x"),
        Fault(64, "nonsense"),
        Fault(66, "send", "http://127.0.0.1:9/push/x", "--file", "/nowhere"),
        Fault(73, "serve", "--data", "/proc/nowhere"),
        Fault(64, "serve", "--data", "/tmp/x", "--listen", "nonsense"),
        Fault(64, "serve", "--data", "/tmp/x", "--homes", "3"),
        Fault(66, "serve", "--data", "/tmp/x", "--config", "/nowhere.json"),
        Fault(66, "serve", "--data", "/tmp/x", "--outward-ca", "/nowhere.pem"),
        Fault(64, "apns", "send", "--token", "00ff", "--title", "x"),
        Fault(
            66, "apns", "check", "--key", "/nowhere", "--key-id", "K", "--team-id", "T", "--topic", "a", "--endpoint",
            "https://127.0.0.1:9"),
        Fault(0, "apns", "send", "--help"), Fault(0, "apns", "channels", "create", "--help"),
        Fault(0, "apns", "check", "--help"), Fault(0, "--help"), Fault(0, "serve", "--help"), Fault(0, "listen", "--help"),
    ]

    @Test(arguments: faults)
    func `faults end with a sentence and the documented code`(fault: Fault) async throws {
        let (status, lines) = try await run(fault.arguments)
        #expect(status == fault.status, "\(fault.arguments) printed: \(lines)")
        #expect(!lines.isEmpty)
    }
}
