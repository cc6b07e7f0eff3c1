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
