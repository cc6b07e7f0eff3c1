import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GettingStartedTests {
    @Test func `the Package.swift of the client's page is a package that links the client`() async throws {
        let page = "Sources/CarillonClient/CarillonClient.docc/GettingStarted.md"
        let manifest = try Self.block("// swift-tools-version", of: page)
        let package = try await Self.dump(manifest)
        #expect(package.contains("\"CarillonClient\""))
        let text = try String(contentsOf: PageCode.root.appending(path: page), encoding: .utf8)
        #expect(text.contains("libsqlite3-dev"))
    }

    @Test func `the dependencies and targets of the APNs page are those of a package that links the library`() async throws {
        let members = try Self.block(
            "dependencies: [.package(", of: "Sources/CarillonAPNs/CarillonAPNs.docc/GettingStarted.md")
        let package = try await Self.dump(
            """
            // swift-tools-version: 6.2
            import PackageDescription

            let package = Package(
            name: "backend", platforms: [.macOS(.v15)],
            \(members))
            """)
        #expect(package.contains("\"CarillonAPNs\""))
    }

    /// Returns the text of the block that begins so.
    private static func block(_ beginning: String, of page: String) throws -> String {
        let text = try String(contentsOf: PageCode.root.appending(path: page), encoding: .utf8)
        let start = try #require(text.range(of: "```swift\n" + beginning)).lowerBound
        let block = text[start...].dropFirst("```swift\n".count)
        let end = try #require(block.range(of: "```")).lowerBound
        return String(block[..<end])
    }

    /// Returns the content of a manifest, as the package manager reads it.
    private static func dump(_ manifest: String) async throws -> String {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try manifest.write(to: directory.appendingPathComponent("Package.swift"), atomically: true, encoding: .utf8)
        let dump = try Program("/usr/bin/env", ["swift", "package", "dump-package", "--package-path", directory.path])
        #expect(await dump.exitStatus() == 0, "\(dump.output)")
        return dump.output.joined(separator: "\n")
    }
}
