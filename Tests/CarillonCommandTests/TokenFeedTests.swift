import Foundation
import Testing

@testable import CarillonCommand

@Suite(.timeLimit(.minutes(5)))
struct TokenFeedTests {
    private func withFile(_ content: String, _ work: (String) async throws -> Void) async throws {
        let path = NSTemporaryDirectory() + UUID().uuidString
        try Data(content.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await work(path)
    }

    @Test func `the second token waits until it may be sent`() async throws {
        let feed = TokenFeed(["aa", "bb", "cc"])
        var tokens = feed.makeAsyncIterator()
        #expect(try await tokens.next()?.deviceToken == "aa")
        async let second = feed.makeAsyncIterator().first()
        feed.proceed()
        #expect(try await second?.deviceToken == "bb")
        async let third = feed.makeAsyncIterator().first()
        feed.open()
        #expect(try await third?.deviceToken == "cc")
        #expect(try await tokens.next() == nil)
        #expect(feed.isExhausted)
    }

    @Test func `nothing is lost when permits come while the file is read`() async throws {
        let count = 100_000
        try await withFile((0..<count).map { "\($0)" }.joined(separator: "\n")) { path in
            let feed = try TokenFeed(file: path)
            // Ends when the group is cancelled, after the last token.
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    while !Task.isCancelled {
                        feed.proceed()
                        feed.open()
                        await Task.yield()
                    }
                }
                var next = 0
                for try await token in feed {
                    guard token.deviceToken == String(next), token.line == next + 1 else { break }
                    next += 1
                }
                #expect(next == count)
                group.cancelAll()
            }
        }
    }

    @Test func `the feed ends when it is stopped, even while a token is awaited`() async throws {
        let feed = TokenFeed(["aa", "bb"])
        var tokens = feed.makeAsyncIterator()
        _ = try await tokens.next()
        async let rest = feed.makeAsyncIterator().first()
        feed.stop()
        #expect(try await rest == nil)
        #expect(!feed.isExhausted)
    }

    @Test func `each token is returned once if that is requested, and its bytes are counted`() async throws {
        let tokens = ["aa", "bb", "AA", "aa", "cc", "Bb", "dd", "dd"]
        for once in [false, true] {
            try await withFile(tokens.joined(separator: "\n")) { path in
                let feed = try TokenFeed(file: path, once: once)
                feed.open()
                var given: [TokenLine] = []
                for try await token in feed { given.append(token) }
                #expect(given.map(\.deviceToken) == (once ? ["aa", "bb", "cc", "dd"] : tokens))
                #expect(feed.repeated == (once ? 4 : nil))
                // Tokens that wait behind the last one are not missed.
                #expect(given.map(\.bytes).reduce(0, +) == (once ? 21 : 23))
                #expect(given.map(\.line) == (once ? [1, 2, 5, 7] : Array(1...8)))
            }
            let feed = TokenFeed(tokens, once: once)
            #expect(feed.count == (once ? 4 : 8))
        }
    }

    @Test func `a missing file and a directory are reported`() {
        for path in ["/nowhere/tokens", NSTemporaryDirectory()] {
            let fault = #expect(throws: CommandFault.self) { try TokenFeed(file: path) }
            #expect(fault?.code == ExitStatus.noInput)
        }
    }
}

extension TokenFeed.Iterator {
    fileprivate func first() async throws -> TokenLine? {
        var copy = self
        return try await copy.next()
    }
}
