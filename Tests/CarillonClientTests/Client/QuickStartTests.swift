import Foundation
import Testing

struct QuickStartTests {
    @Test(arguments: ["ClientQuickStart", "ClientService"])
    func `the snippets in the documentation are those that are compiled`(example: String) throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let snippet = try String(
            contentsOf: root.appendingPathComponent("Examples/\(example)/main.swift"), encoding: .utf8)
        let page = try String(
            contentsOf: root.appendingPathComponent("Sources/CarillonClient/CarillonClient.docc/GettingStarted.md"),
            encoding: .utf8)
        let code = try #require(snippet.range(of: "import CarillonClient")).lowerBound
        #expect(page.contains("```swift\n" + snippet[code...] + "```"))
    }
}
