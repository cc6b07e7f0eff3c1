import Foundation
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GettingStartedTests {
    @Test func `the Package.swift of the client's page is a package that links the client`() async throws {
        let page = try String(
            contentsOfFile: Program.packageDirectory + "/Sources/CarillonClient/CarillonClient.docc/GettingStarted.md",
            encoding: .utf8)
        let start = try #require(page.range(of: "// swift-tools-version")).lowerBound
        let end = try #require(page[start...].range(of: "```")).lowerBound
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try String(page[start..<end])
            .write(to: directory.appendingPathComponent("Package.swift"), atomically: true, encoding: .utf8)
        let dump = try Program("/usr/bin/env", ["swift", "package", "dump-package", "--package-path", directory.path])
        #expect(await dump.exitStatus() == 0, "\(dump.output)")
        #expect(dump.output.contains { $0.contains("\"CarillonClient\"") })
        #expect(page.contains("libsqlite3-dev"))
    }
}
