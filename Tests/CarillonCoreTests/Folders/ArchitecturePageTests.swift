import Foundation
import TestSupport
import Testing

/// Compares the tables of docs/architecture.md with the files in Sources.
@Suite(.timeLimit(.minutes(5)))
struct ArchitecturePageTests {
    private static let sources = PageCode.root.appending(path: "Sources")

    /// Returns the rows of the tables of a section, each as the code spans of its cells.
    private static func rows(of heading: String) throws -> [[[String]]] {
        let page = try String(contentsOf: PageCode.root.appending(path: "docs/architecture.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "\n\(heading)\n")
        try #require(parts.count == 2, "\(heading)")
        let section = parts[1].components(separatedBy: "\n##")[0]
        return section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst().map { row in
            row.split(separator: "|").map { cell in cell.matches(of: #/`([^`]+)`/#).map { String($0.output.1) } }
        }
    }

    @Test(arguments: [
        "CarillonCore", "CarillonServer", "CarillonClient", "CarillonCommand", "CarillonAPNs", "CarillonSQLite",
    ])
    func `the table of a target has each of its folders, and no other`(target: String) throws {
        let root = Self.sources.appending(path: target)
        let files = try FileManager.default.contentsOfDirectory(at: root, includingPropertiesForKeys: [.isDirectoryKey])
        let folders = try files.filter { file in
            try file.pathExtension.isEmpty && file.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true
        }
        let rows = try Self.rows(of: "### Folders of \(target)")
        #expect(rows.compactMap(\.first?.first).sorted() == folders.map(\.lastPathComponent).sorted())
    }

    /// Returns the text of a file, or of all files of a folder.
    private static func code(at place: URL) throws -> String {
        if place.pathExtension == "swift" { return try String(contentsOf: place, encoding: .utf8) }
        let files = try FileManager.default.contentsOfDirectory(at: place, includingPropertiesForKeys: nil)
        return try files.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
    }

    @Test func `each file of numbers exists and has the types of its row`() throws {
        let rows = try Self.rows(of: "## Where the numbers are")
        #expect(rows.count > 20, "rows are not found")
        for row in rows {
            try #require(row.count == 3, "\(row)")
            try #require(!row[1].isEmpty && !row[2].isEmpty, "\(row)")
            var code = ""
            for path in row[1] { code += try Self.code(at: Self.sources.appending(path: path)) }
            for type in row[2] {
                for name in type.split(separator: ".") { #expect(code.contains(name), "\(row[1]) has no \(type)") }
            }
        }
    }
}
