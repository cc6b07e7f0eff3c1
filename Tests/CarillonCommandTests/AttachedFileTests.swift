import CarillonClient
import Foundation
import Testing

@testable import CarillonCommand

/// The values of `--attach`.
struct AttachedFileTests {
    private func parsed(_ text: String, files: Set<String> = []) -> NamedFile {
        AttachedFile.parsed(text) { files.contains($0) }
    }

    @Test func `a path is made absolute, so that its last component is the name`() {
        let here = FileManager.default.currentDirectoryPath
        #expect(parsed("report.pdf") == NamedFile(path: here + "/report.pdf"))
        #expect(parsed("./report.pdf") == NamedFile(path: here + "/report.pdf"))
        #expect(parsed("/tmp/report.pdf") == NamedFile(path: "/tmp/report.pdf"))
    }

    @Test func `a name can be set`() {
        #expect(parsed("may.pdf=/tmp/a=b") == NamedFile(path: "/tmp/a=b", name: "may.pdf"))
        #expect(parsed("2026/may.pdf=/tmp/x") == NamedFile(path: "/tmp/x", name: "2026/may.pdf"))
        #expect(parsed("=/tmp/x").name == nil)
    }

    @Test func `a path that exists is a path, although it has an equals sign`() {
        #expect(parsed("/tmp/a=b", files: ["/tmp/a=b"]) == NamedFile(path: "/tmp/a=b"))
    }
}
