import Foundation
import Testing

/// Every command that calls the API, when a proxy, a login page or another program answers in the server's place.
@Suite(.timeLimit(.minutes(10)))
struct RelayedCommandTests {
    private static let answers: [HostileServer.Answer] =
        [
            (200, "<html><body>Log in.</body></html>"), (200, ""), (204, ""), (302, ""), (401, "<html>"), (403, "<html>"),
            (404, "<html>"), (410, ""), (511, "<html>"),
        ].map { status, body in
            HostileServer.Answer(
                status: status, headers: [("Content-Type", "text/html"), ("Location", "http://login.example/")], body: body,
                isNamed: false)
        }

    @Test(arguments: HostileTextTests.cases)
    func `a command says who answered, and that it can be tried again`(one: HostileTextTests.Case) async throws {
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

    @Test func `send and health say who answered`() async throws {
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
}
