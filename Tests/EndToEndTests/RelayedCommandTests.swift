import CarillonWire
import Foundation
import Synchronization
import Testing

/// Every command that calls the API, when a proxy, a login page or another program answers in the server's place.
@Suite(.timeLimit(.minutes(10)))
struct RelayedCommandTests {
    private static let answers: [HostileServer.Answer] =
        [
            (200, "<html><body>Log in.</body></html>"), (200, ""), (204, ""), (302, ""), (401, "<html>"), (403, "<html>"),
            (404, "<html>"), (410, ""), (511, "<html>"), (200, "{}"), (200, #"{"status":"UP"}"#),
        ].map { status, body in
            HostileServer.Answer(
                status: status, headers: [("Content-Type", "text/html"), ("Location", "http://login.example/")], body: body,
                isNamed: false)
        }

    @Test(arguments: HostileTextTests.cases)
    func `a command reports the program that answered, and that it can be repeated`(one: HostileTextTests.Case) async throws
    {
        for answer in Self.answers {
            let server = try HostileServer { _, _ in answer }
            let (end, lines) = try await run(
                one.arguments + ["--server", server.address, "--key", "k"], input: one.input)
            #expect(end == 75, "\(one.testDescription) ended with \(end) after \(answer.status): \(lines)")
            #expect(lines.contains { $0.contains("\(server.address)/v1/") }, "\(lines)")
            #expect(lines.contains { $0.contains("with status \(answer.status)") }, "\(lines)")
            withExtendedLifetime(server) {}
        }
    }

    @Test func `send and health report the program that answered`() async throws {
        for answer in Self.answers {
            let server = try HostileServer { _, _ in answer }
            let sent = try await run(["send", server.address + "/push/secret", "Hello"])
            #expect(sent.status == 75, "\(answer.status): \(sent.lines)")
            #expect(sent.lines.contains { $0.contains("with status \(answer.status)") }, "\(sent.lines)")
            #expect(!sent.lines.joined().contains("secret"))
            let health = try await run(["health", "--server", server.address])
            #expect(health.status == 1, "\(answer.status): \(health.lines)")
            withExtendedLifetime(server) {}
        }
    }

    @Test(arguments: [true, false])
    func `an app without a realm is shown if the server names itself`(isNamed: Bool) async throws {
        let server = try HostileServer { _, _ in
            .init(headers: [("Content-Type", "application/json")], body: "{}", isNamed: isNamed)
        }
        let (status, lines) = try await run(["apps", "realm", "show", "a.b", "--server", server.address, "--key", "k"])
        #expect(status == (isNamed ? 0 : 75), "\(lines)")
        withExtendedLifetime(server) {}
    }

    // MARK: Commands that keep trying

    private final class Requests: Sendable {
        private let seen = Mutex<Set<String>>([])

        /// Whether no request had this method and path before.
        func isFirst(_ method: String, _ path: String) -> Bool {
            seen.withLock { $0.insert("\(method) \(path.prefix { $0 != "?" })").inserted }
        }
    }

    /// Answers the first request of each method and path in the server's place.
    private static func relay(_ answer: HostileServer.Answer, before server: LiveServer) throws -> HostileServer {
        let requests = Requests()
        return try HostileServer(before: server.port) { method, path in requests.isFirst(method, path) ? answer : nil }
    }

    private func check(_ lines: [String], _ relay: HostileServer, _ answer: HostileServer.Answer) {
        let warning = lines.first { $0.contains("another program answered with status \(answer.status)") } ?? ""
        #expect(warning.contains(relay.address) && warning.contains("retry"), "\(answer.status): \(lines)")
    }

    @Test func `listen and attachments report the program that answered, and succeed when the server answers`() async throws
    {
        let server = try await LiveServer.start()
        let (client, sender) = try await server.whileStopped { directory in
            (try await LiveServer.key(.client, in: directory), try await LiveServer.key(.sender, in: directory))
        }
        let file = server.directory + "/file"
        try Data("content".utf8).write(to: URL(filePath: file))
        for (number, answer) in Self.answers.enumerated() {
            let relay = try Self.relay(answer, before: server)
            let state = "\(server.directory)/relayed-\(number)"
            let listener = try Program(
                Program.carillon,
                [
                    "listen", "--server", relay.address, "--key", client, "--app", LiveServer.app, "--channel", "c",
                    "--state", state + "-app",
                ])
            _ = try await listener.line { $0.hasPrefix("opened") ? $0 : nil }
            check(listener.output, relay, answer)
            listener.signal(SIGKILL)
            let reach = ["--server", relay.address, "--key", sender, "--state", state]
            let put = ["attachments", "put", file, "--for", "senders", "--manifest", state + ".json"]
            let sent = try await run(put + reach)
            #expect(sent.status == 0, "\(answer.status): \(sent.lines)")
            check(sent.lines, relay, answer)
            let received = try await run(["attachments", "get", state + ".json", "--to", state + ".file"] + reach)
            #expect(received.status == 0, "\(answer.status): \(received.lines)")
            check(received.lines, relay, answer)
            #expect(try Data(contentsOf: URL(filePath: state + ".file")) == Data("content".utf8))
            withExtendedLifetime(relay) {}
        }
    }

    @Test func `services report the program that answered, and succeed when the server answers`() async throws {
        let scenario = try await ServiceScenario()
        let method = "com.example.echo/1.0/echo"
        func options(_ app: String, _ state: String, _ relay: HostileServer) throws -> [String] {
            try scenario.options(app, state: state).map { $0 == scenario.server.address ? relay.address : $0 }
        }
        for (number, answer) in Self.answers.enumerated() {
            let relays = (
                provider: try Self.relay(answer, before: scenario.server),
                consumer: try Self.relay(answer, before: scenario.server)
            )
            let state = "\(scenario.server.directory)/relayed-\(number)"
            let provider = try Program(
                Program.carillon,
                ["services", "provide", "--method", method, "--echo"]
                    + options(ServiceScenario.files, state + "-files", relays.provider))
            let device = try await provider.line { line in
                line.firstMatch(of: /"device":"([^"]+)"/).map { String($0.1) }
            }
            let call =
                ["services", "call", method, "--of", "\(ServiceScenario.files)/\(device)", "--deadline", "60"]
                + (try options(LiveServer.app, state + "-mail", relays.consumer))
            var (status, lines) = try await run(call)
            check(lines, relays.consumer, answer)
            // The provider's offer can reach the server later.
            for _ in 0..<100 where status != 0 && lines.contains(where: { $0.contains("application_not_found") }) {
                try await Task.sleep(for: .milliseconds(50))
                (status, lines) = try await run(call)
            }
            #expect(status == 0, "\(answer.status): \(lines)")
            check(provider.output, relays.provider, answer)
            provider.signal(SIGKILL)
            withExtendedLifetime(relays) {}
        }
    }
}
