import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// Names of files from other devices.
struct RelativePathTests {
    @Test(arguments: [
        "a", "report.pdf", "photos/2026/pump (1).jpg", "Ärzte.txt", "日本/文.txt", "a b", "COM10", "console", "x.con",
        "a\u{200C}b.txt", "a\u{200D}b.txt", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}.png",
        "\u{2764}\u{FE0F}\u{200D}\u{1F525}.txt",
    ])
    func `a plain name is taken`(_ name: String) throws {
        #expect(try #require(RelativePath(name)).text == name)
    }

    @Test(arguments: [
        "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "./a", ".hidden", "a/.git/config", "a\\b", "..\\a",
        "a\0b", "a\nb", "a\u{7F}", "a\u{85}", "C:", "C:a", "a:stream", "a?", "a*", "a\"b", "a<b", "a>b", "a|b", "con", "CON",
        "nul.txt", "Com1", "lpt9.doc", "COM¹", "aux/a", "a.", "a ", " a", "a\u{202E}gpj.exe", "a\u{200B}b", "a\u{FEFF}",
        "a\u{2066}b", "a\u{E000}", "a\u{0378}", "a\u{200E}b", "a\u{200F}b", "a\u{061C}b", "a\u{2060}b", "\u{200D}a",
        "\u{200C}.git",
        ".\u{200D}git", ".\u{301}a", "con.\u{200D}txt", "nul.\u{301}txt", "..\u{200D}/a", "/\u{200D}a",
        "/\u{301}a", "a/\u{200D}", "a .", "a\u{301}.",
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

    @Test func `files are sent under their own names or under other given names`() throws {
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
        #expect(longest.utf8.count == 255)
        #expect(RelativePath(String(repeating: "é", count: 127)) != nil)
        #expect(RelativePath(String(repeating: "é", count: 128)) == nil, "bytes count")
        #expect(RelativePath(String(repeating: "e\u{301}", count: 127)) != nil, "after the normalization")
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
    func `two names that are equal on some system collide`(_ names: [String], _ collide: Bool) {
        let paths = names.compactMap { RelativePath($0) }
        #expect((RelativePath.distinct(paths) != paths) == collide, "\(names)")
    }

    @Test(
        arguments: [
            (["same.txt", "same.txt", "same.txt"], ["same.txt", "same 2.txt", "same 3.txt"]),
            (["same.txt", "same 2.txt", "SAME.txt"], ["same.txt", "same 2.txt", "SAME 3.txt"]),
            (["same.txt", "same.txt", "same 2.txt"], ["same.txt", "same 2.txt", "same 2 2.txt"]),
            (["a/same", "b/same", "a/Same"], ["a/same", "b/same", "a/Same 2"]),
            (["a.tar.gz", "a.tar.gz"], ["a.tar.gz", "a.tar 2.gz"]), (["a\u{200D}b", "ab"], ["a\u{200D}b", "ab 2"]),
            (["a", "a/b"], nil), (["a/b", "A"], nil), (["a/b", "A/c"], ["a/b", "A/c"]), ([], []),
        ] as [([String], [String]?)])
    func `equal names get numbers before their extension, in their order`(_ names: [String], _ wanted: [String]?) {
        let paths = names.compactMap { RelativePath($0) }
        let distinct = RelativePath.distinct(paths)
        #expect(distinct?.map(\.text) == wanted)
        guard let distinct else { return }
        #expect(RelativePath.distinct(distinct) == distinct, "the receiver changes nothing more")
    }

    @Test func `a name that gets a number stays within the limits`() throws {
        let directory = String(repeating: "d", count: 250)
        let deep = Array(repeating: directory, count: 3).joined(separator: "/") + "/"
        let names = [
            String(repeating: "é", count: 125) + ".txt", "a." + String(repeating: "x", count: 253),
            deep + String(repeating: "x", count: 1000 - deep.utf8.count),
        ]
        for name in names {
            let path = try #require(RelativePath(name))
            let distinct = try #require(RelativePath.distinct([path, path]))
            #expect(distinct[0] == path && distinct[1] != path)
            #expect(distinct[1].text.utf8.count <= RelativePath.longestBytes)
            #expect(distinct[1].components.allSatisfy { $0.utf8.count <= RelativePath.longestComponentBytes })
            #expect(distinct[1].text.contains(" 2"))
        }
    }

    @Test(arguments: [("e\u{301}.txt", "\u{E9}.txt"), ("\u{212B}", "\u{C5}"), ("\u{1112}\u{1161}\u{11AB}", "\u{D55C}")])
    func `names travel in NFC`(_ name: String, _ normal: String) throws {
        let path = try #require(RelativePath(name))
        #expect(Array(path.text.unicodeScalars) == Array(normal.unicodeScalars))
    }

    /// Every accepted path stays below its directory.
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

    @Test(arguments: ["cafe\u{301}.txt", "cafe\u{301}/a.txt", "plain/cafe\u{301}.txt"])
    func `a file that an earlier version put down in another Unicode form gets its name in NFC`(_ former: String) throws {
        let directory = TemporaryDirectory()
        let inbox = MessageFiles(root: directory.path)
        let file = try #require(RelativePath(former))
        #expect(Array(file.text.utf8) != Array(former.utf8))
        let gathering = directory.path + "/.gathering/3"
        #expect(!inbox.isGathered(file, for: 3))
        for base in [gathering, directory.path + "/a/1"] {
            let path = base + "/" + former
            try FileManager.default.createDirectory(
                atPath: DiskFile.directory(of: path), withIntermediateDirectories: true)
            try Data([7]).write(to: URL(fileURLWithPath: path))
        }
        // An empty directory that the present version made.
        try FileManager.default.createDirectory(
            atPath: DiskFile.directory(of: "\(gathering)/\(file.text)"), withIntermediateDirectories: true)
        #expect(inbox.isGathered(file, for: 3))
        inbox.normalize([file], in: directory.path + "/a/1")
        for base in [gathering, directory.path + "/a/1"] {
            #expect(try Data(contentsOf: URL(fileURLWithPath: "\(base)/\(file.text)")) == Data([7]))
            #expect(try FileManager.default.contentsOfDirectory(atPath: base).count == 1)
        }
    }
}
