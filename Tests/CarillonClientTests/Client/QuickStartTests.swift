import Foundation
import Testing

struct QuickStartTests {
    @Test func `the quick start in the documentation is the snippet that is compiled`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let snippet = try String(
            contentsOf: root.appendingPathComponent("Examples/ClientQuickStart/main.swift"), encoding: .utf8)
        let page = try String(
            contentsOf: root.appendingPathComponent("Sources/CarillonClient/CarillonClient.docc/GettingStarted.md"),
            encoding: .utf8)
        let code = try #require(snippet.range(of: "import CarillonClient")).lowerBound
        #expect(page.contains("```swift\n" + snippet[code...] + "```"))
    }
}
