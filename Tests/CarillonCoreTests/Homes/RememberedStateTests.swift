import Foundation
import TestSupport
import Testing

/// Compares the types that remember something with the table in docs/architecture.md, which lists their contents after a start.
@Suite(.timeLimit(.minutes(5)))
struct RememberedStateTests {
    private static let targets = ["CarillonCore", "CarillonServer", "CarillonSQLite"]
    /// Values that threads share are in one of these.
    private static var declaration: Regex<Substring> { #/\b(?:Mutex|Atomic)[<(]|^\s*(?:\w+\s)*actor\s\w/# }

    private static func hasSharedState(_ source: String) -> Bool {
        source.split(separator: "\n").contains { line in
            !line.drop(while: \.isWhitespace).hasPrefix("//") && line.contains(declaration)
        }
    }

    /// The files with shared state, by the names of their types.
    private static func types() throws -> Set<String> {
        var types: Set<String> = []
        for target in targets {
            let root = PageCode.root.appending(path: "Sources/\(target)")
            let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
            for path in paths where path.hasSuffix(".swift") {
                let source = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                guard hasSharedState(source) else { continue }
                let file = path.split(separator: "/").last ?? ""
                types.insert(String(file.prefix { $0 != "." && $0 != "+" }))
            }
        }
        return types
    }

    /// The cells of the table.
    private static func rows() throws -> [[String]] {
        let page = try String(contentsOf: PageCode.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "\n## Where state lives\n")
        try #require(parts.count == 2)
        let lines = parts[1].components(separatedBy: "\n## ")[0].split(separator: "\n").filter { $0.hasPrefix("| ") }
        // The first line has the titles.
        return lines.dropFirst().map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test func `the page on the architecture states what each type remembers after a start`() throws {
        var named: Set<String> = []
        for row in try Self.rows() {
            try #require(row.count == 4, "\(row)")
            #expect(!row.contains(""), "\(row)")
            for name in row[1].matches(of: #/`([A-Z]\w*)`/#) { named.insert(String(name.output.1)) }
        }
        let types = try Self.types()
        #expect(types.count > 50, "types are not found")
        #expect(types.subtracting(named).sorted() == [], "these are not in the table")
        #expect(named.subtracting(types).sorted() == [], "these remember nothing")
    }

    @Test(arguments: [
        ("private let state = Mutex(State())", true), ("    let counts = Mutex<[Key: Int]>([:])", true),
        ("private static let freed = Atomic<Int>(0)", true), ("package actor ItemEngine {", true),
        ("    /// A `Mutex<Int>` of its own.", false), ("func run(isolation: (any Actor)?) {}", false),
        ("let factor = 1", false), ("import Synchronization", false),
    ])
    func `shared state is found in a source`(line: String, isFound: Bool) {
        #expect(Self.hasSharedState("struct Room {\n\(line)\n}") == isFound)
    }
}
