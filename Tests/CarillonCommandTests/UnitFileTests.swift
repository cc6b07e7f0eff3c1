import ArgumentParser
import CarillonServer
import Foundation
import Testing

@testable import CarillonCommand

/// The units of `docs/service-managers.md`.
struct UnitFileTests {
    private static var page: String {
        get throws {
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            return try String(contentsOf: root.appendingPathComponent("docs/service-managers.md"), encoding: .utf8)
        }
    }

    /// The values of a name in the units.
    private static func values(_ name: String) throws -> [String] {
        try page.split(separator: "\n").filter { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    @Test func `the command of each unit is accepted by the server`() throws {
        let commands = try Self.values("ExecStart")
        #expect(!commands.isEmpty)
        for command in commands {
            let words = command.split(separator: " ").map(String.init)
            #expect(words.prefix(2) == ["/usr/local/bin/carillon", "serve"])
            let serve = try ServeCommand.parse(Array(words.dropFirst(2)))
            var flags = ["data": serve.data ?? ""]
            flags["listen"] = serve.listen
            flags["public-url"] = serve.publicURL
            let settings = try ServeOptions(flags: flags, file: nil, environment: [:]).settings()
            #expect(settings.publicURL == "https://push.example.com")
            let stop = try #require(Self.values("TimeoutStopSec").compactMap { Int($0) }.min())
            #expect(stop > settings.stopSeconds)
        }
    }
}
