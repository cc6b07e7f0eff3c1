import Testing

@testable import CarillonCommand

struct TokenLinesTests {
    private func tokens(_ parts: [String]) -> [TokenLine] {
        var lines = TokenLines()
        var all: [TokenLine] = []
        for part in parts { all += lines.take(Array(part.utf8)) }
        if let last = lines.end() { all.append(last) }
        return all
    }

    @Test func `a token is a line, without the spaces around it`() throws {
        let all = tokens(["aa\n  bb \t\r\ncc"])
        #expect(all.map(\.deviceToken) == ["aa", "bb", "cc"])
        #expect(all.map(\.line) == [1, 2, 3])
    }

    @Test func `blank lines and comments are passed over and counted`() throws {
        let all = tokens(["\u{FEFF}# installs\n\n   \naa\n  # more\nbb\n"])
        #expect(all.map(\.deviceToken) == ["aa", "bb"])
        #expect(all.map(\.line) == [4, 6])
    }

    @Test func `however the bytes are split, the tokens are the same and all bytes are counted`() throws {
        let text = "# x\naaaa\r\n\nbb\ncccccc\n#\ndd"
        let whole = tokens([text])
        for size in 1...text.utf8.count {
            let bytes = Array(text.utf8)
            let parts = stride(from: 0, to: bytes.count, by: size).map {
                String(decoding: bytes[$0..<min($0 + size, bytes.count)], as: UTF8.self)
            }
            #expect(tokens(parts) == whole)
        }
        #expect(whole.map(\.bytes).reduce(0, +) == text.utf8.count)
    }

    @Test func `a line that is too long is one that fails, and harms no other`() {
        let long = String(repeating: "b", count: TokenLines.longestLine * 3 + 1)
        let all = tokens(["aa\nbbbb", long, long, "\ncc\n", long])
        #expect(all.map(\.line) == [1, 2, 3, 4])
        #expect([all[0], all[2]].map(\.deviceToken) == ["aa", "cc"])
        #expect(all[1].deviceToken == String(repeating: "b", count: 64) + "…")
        #expect(all.map(\.bytes).reduce(0, +) == 3 + 4 + long.utf8.count * 3 + 4)
    }
}
