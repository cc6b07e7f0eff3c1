import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// Names of files that come from others.
struct RelativePathTests {
    @Test(arguments: [
        "a", "report.pdf", "photos/2026/pump (1).jpg", "Ärzte.txt", "日本/文.txt", "a b", "COM10", "console", "x.con",
    ])
    func `a plain name is taken`(_ name: String) throws {
        #expect(try #require(RelativePath(name)).text == name)
    }

    @Test(arguments: [
        "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "./a", ".hidden", "a/.git/config", "a\\b", "..\\a",
        "a\0b", "a\nb", "a\u{7F}", "a\u{85}", "C:", "C:a", "a:stream", "a?", "a*", "a\"b", "a<b", "a>b", "a|b", "con", "CON",
        "nul.txt", "Com1", "lpt9.doc", "COM¹", "aux/a", "a.", "a ", " a", "a\u{202E}gpj.exe", "a\u{200B}b", "a\u{FEFF}",
        "a\u{2066}b", "a\u{E000}", "a\u{0378}",
    ])
    func `a name that leads elsewhere, or is another on some system, is refused`(_ name: String) {
        #expect(RelativePath(name) == nil)
    }

    @Test(
        arguments: [
            ("report.pdf", nil, "report.pdf"), ("./report.pdf", nil, "report.pdf"), ("a/./b.txt", nil, "a/b.txt"),
            ("/tmp/report.pdf", nil, "report.pdf"), ("/tmp/a/.", nil, "a"), ("/tmp/x", "y.pdf", "y.pdf"),
            ("/tmp/x", "./a/y.pdf", "a/y.pdf"), ("../x", nil, "../x"), (".", nil, ""), ("/", nil, ""),
        ] as [(String, String?, String)])
    func `the name of a file that is sent has no dots`(_ path: String, _ name: String?, _ wanted: String) {
        #expect(RelativePath.nameText(of: path, named: name) == wanted)
    }

    @Test func `files are sent under their own names, or under the given ones`() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/report.pdf"
        try Data().write(to: URL(filePath: path))
        #expect(try ServiceEngine.names(of: [path]).map { $0.name.text } == ["report.pdf"])
        let names = try ServiceEngine.names(of: [path, path], as: [nil, "./copies/second.pdf"])
        #expect(names.map { $0.name.text } == ["report.pdf", "copies/second.pdf"])
        #expect(names.map { $0.path } == [path, path])
        #expect(throws: ServiceError.self) { try ServiceEngine.names(of: [path], as: ["../report.pdf"]) }
    }

    @Test(arguments: [("/a/./b", "/a/b"), ("/a//b/", "/a/b"), ("", ""), ("/", "/")])
    func `a path from the root stays one`(_ path: String, _ wanted: String) {
        #expect(AbsolutePath.of(path) == wanted)
    }

    @Test func `a relative path is taken from the working directory`() {
        let here = FileManager.default.currentDirectoryPath
        #expect(AbsolutePath.of("./files") == here + "/files")
        #expect(AbsolutePath.of("files/./a") == here + "/files/a")
    }

    @Test func `names have their limits`() {
        let longest = String(repeating: "x", count: RelativePath.longestComponentBytes)
        #expect(RelativePath(longest) != nil)
        #expect(RelativePath(longest + "x") == nil)
        #expect(RelativePath(String(repeating: "é", count: 101)) == nil, "bytes count")
        let deep = Array(repeating: "d", count: RelativePath.mostComponents)
        #expect(RelativePath(deep.joined(separator: "/")) != nil)
        #expect(RelativePath((deep + ["d"]).joined(separator: "/")) == nil)
        #expect(RelativePath(Array(repeating: longest, count: 5).joined(separator: "/")) == nil, "as a whole, too")
    }

    @Test(arguments: [
        (["a", "A"], true), (["a/b", "A/c"], false), (["a", "a/b"], true), (["A", "a/b"], true), (["é", "e\u{301}"], true),
        (["straße", "STRASSE"], true), (["a/x", "a/X"], true), (["a", "b"], false), (["ﬁ", "FI"], true),
        (["a/b", "a"], true),
    ])
    func `two names that are one on some system collide`(_ names: [String], _ collide: Bool) {
        #expect(RelativePath.collide(names.compactMap { RelativePath($0) }) == collide, "\(names)")
    }

    /// Whatever comes, what is taken stays below its directory.
    @Test func `a thousand hostile names lead nowhere else`() {
        var random = SeededRandom(seed: 16)
        let pieces = [
            "..", ".", "/", "\\", "a", "\0", "~", "%2e%2e", "\u{2215}", "\u{FF0F}", "\u{2024}\u{2024}", "con", ":", "", "//",
            "\u{202E}",
            "-rf", "$HOME", "`x`", "\r", "b.txt", " ",
        ]
        var taken = 0
        for _ in 0..<5000 {
            let count = Int.random(in: 1...6, using: &random)
            let name = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined(
                separator: Bool.random(using: &random) ? "/" : "")
            guard let path = RelativePath(name) else { continue }
            taken += 1
            #expect(
                path.components.allSatisfy {
                    !$0.isEmpty && $0 != "." && $0 != ".." && !$0.contains("/") && !$0.contains("\0")
                })
            #expect(!path.text.hasPrefix("/"))
        }
        #expect(taken > 100)
    }
}
