import Foundation
import TestSupport
import Testing

/// `carillon services` as its page shows it.
@Suite(.timeLimit(.minutes(5)))
struct ServiceCommandTests {
    private let method = "com.example.echo/1.0/echo"

    /// The path as a person at a terminal writes it.
    private func relative(_ path: String) -> String {
        let depth = FileManager.default.currentDirectoryPath.split(separator: "/").count
        return "./" + String(repeating: "../", count: depth) + path.dropFirst()
    }

    private func fingerprint(_ line: String) -> String? {
        line.firstMatch(of: /"fingerprint":"([^"]+)"/).map { String($0.1) }
    }

    /// Calls until the provider's offer has reached the server.
    private func call(_ arguments: [String]) async throws -> (status: Int32, lines: [String]) {
        var result = try await run(arguments)
        for _ in 0..<100 where result.status != 0 && result.lines.contains(where: { $0.contains("application_not_found") }) {
            try await Task.sleep(for: .milliseconds(50))
            result = try await run(arguments)
        }
        return result
    }

    @Test func `relative paths of the state and of files work, and the fingerprint is the same at each start`() async throws
    {
        let scenario = try await ServiceScenario()
        let directory = scenario.server.directory
        let offer = ["services", "provide", "--method", method, "--echo"]
        let provide = offer + (try scenario.options(ServiceScenario.files, state: relative(directory + "/files-app")))
        let provider = try Program(Program.carillon, provide)
        let first = try await provider.line { fingerprint($0) }
        let report = try scenario.file("report.pdf", Data("report".utf8))
        let options = try scenario.options(LiveServer.app, state: relative(directory + "/mail-app"))
        let begin = ["services", "call", method, "--of", ServiceScenario.files, "--attach"]
        for (attach, name) in [(relative(report), "report.pdf"), ("may.pdf=" + relative(report), "may.pdf")] {
            let (status, lines) = try await call(begin + [attach] + options)
            #expect(status == 0, "\(lines)")
            #expect(lines.contains { $0.contains("/" + name + "\"") }, "\(lines)")
        }
        provider.signal(SIGINT)
        _ = await provider.exitStatus()
        let again = try Program(Program.carillon, provide)
        #expect(try await again.line { fingerprint($0) } == first)
        again.signal(SIGINT)
        _ = await again.exitStatus()
    }

    @Test func `a request whose handler ended a real process ten times is answered, and its handler is not called again`()
        async throws
    {
        let scenario = try await ServiceScenario()
        let directory = scenario.server.directory
        let (script, calls) = (directory + "/crash.sh", directory + "/calls")
        try Data("#!/bin/sh\necho call >> '\(calls)'\nkill -9 $PPID\n".utf8).write(to: URL(fileURLWithPath: script))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: script)
        let provide =
            ["services", "provide", "--method", method, "--run", script]
            + (try scenario.options(ServiceScenario.files, state: directory + "/files-app"))
        var provider = try Program(Program.carillon, provide)
        _ = try await provider.line { fingerprint($0) }
        let request =
            ["services", "call", method, "--of", ServiceScenario.files, "--deadline", "200"]
            + (try scenario.options(LiveServer.app, state: directory + "/mail-app"))
        let consumer = Task { try await call(request) }
        for _ in 0..<10 {
            let status = await provider.exitStatus()
            #expect(status == -SIGKILL)
            provider = try Program(Program.carillon, provide)
        }
        let (status, lines) = try await consumer.value
        #expect(status != 0 && lines.contains { $0.contains("service_failed") }, "\(lines)")
        let text = try String(contentsOfFile: calls, encoding: .utf8)
        #expect(text == String(repeating: "call\n", count: 10))
        provider.signal(SIGINT)
        _ = await provider.exitStatus()
    }
}
