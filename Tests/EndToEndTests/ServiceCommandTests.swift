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
        let house = try await ServiceHouse()
        let directory = house.server.directory
        let offer = ["services", "provide", "--method", method, "--echo"]
        let provide = offer + (try house.options(ServiceHouse.files, state: relative(directory + "/files-app")))
        let provider = try Program(Program.carillon, provide)
        let first = try await provider.line { fingerprint($0) }
        let report = try house.file("report.pdf", Data("report".utf8))
        let options = try house.options(LiveServer.app, state: relative(directory + "/mail-app"))
        let begin = ["services", "call", method, "--of", ServiceHouse.files, "--attach"]
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
}
