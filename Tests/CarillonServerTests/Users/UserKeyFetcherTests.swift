import CarillonCore
import NIOHTTP1
import NIOPosix
import Testing

@testable import CarillonServer

/// Key sets fetched over true sockets.
@Suite(.timeLimit(.minutes(5)))
struct UserKeyFetcherTests {
    private func fetch(
        _ answer: ScriptedBackend.Answer, isPrivateAllowed: Bool = true, patience: Duration = .seconds(30)
    ) async throws -> (answer: UserKeyFetcher.Answer, backend: ScriptedBackend) {
        let authority = try TestAuthority()
        let backend = try await ScriptedBackend.start(
            answer, tls: authority.serverContext(names: [], addresses: [[127, 0, 0, 1]]))
        var settings = OutwardSettings()
        settings.rules.allowsPrivate = isPrivateAllowed
        settings.authorityFile = try authority.file()
        settings.answerSeconds = 15
        let group = MultiThreadedEventLoopGroup.singleton
        let resolver = NameResolver(group: group, lookup: settings.lookup)
        defer { resolver.shutdown() }
        let fetcher = UserKeyFetcher.over(
            try OutwardCaller(group: group, resolver: resolver, settings: settings), patience: patience)
        return (await fetcher.fetch(try CallAddress("https://127.0.0.1:\(backend.port)/keys")), backend)
    }

    private func body(_ answer: UserKeyFetcher.Answer) -> String? {
        if case .found(let bytes) = answer { String(decoding: bytes, as: UTF8.self) } else { nil }
    }

    private func whole(_ body: String) -> ScriptedBackend.Answer {
        .bytes("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    @Test func `a key set is requested with GET, without a body`() async throws {
        let (answer, backend) = try await fetch(whole("{}"))
        #expect(body(answer) == "{}")
        let request = try #require(backend.received.first)
        #expect(request.head.method == .GET && request.head.uri == "/keys" && request.body.isEmpty)
        #expect(request.head.headers["content-length"].isEmpty && request.head.headers["transfer-encoding"].isEmpty)
    }

    @Test func `a key set has 64 KiB at most`() async throws {
        let largest = String(repeating: "x", count: 65_536)
        #expect(body(try await fetch(whole(largest)).answer) == largest)
        #expect(body(try await fetch(whole(largest + "x")).answer) == nil)
        #expect(body(try await fetch(.flood("HTTP/1.1 200 OK\r\n\r\n", piece: 65_536)).answer) == nil)
    }

    @Test(arguments: [
        ScriptedBackend.Answer.status(302, headers: "Location: https://127.0.0.1/\r\n"), .status(404), .status(500),
        .bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"), .bytes(""),
    ])
    func `a redirect, an error and a part of a set are none`(answer: ScriptedBackend.Answer) async throws {
        #expect(body(try await fetch(answer).answer) == nil)
    }

    @Test(arguments: [("600", .seconds(600)), ("7200", .seconds(3600)), ("soon", nil)] as [(String, Duration?)])
    func `the wait in a refusal is read, up to an hour`(_ value: String, _ wait: Duration?) async throws {
        let refusal = ScriptedBackend.Answer.status(503, headers: "Retry-After: \(value)\r\n")
        guard case .failed(_, let seen) = try await fetch(refusal).answer else {
            Issue.record("it was found")
            return
        }
        #expect(seen == wait)
    }

    @Test func `a server that does not answer is waited for so long and no longer`() async throws {
        let began = ContinuousClock.now
        let stalled = ScriptedBackend.Answer.stall("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")
        guard case .failed(let reason, nil) = try await fetch(stalled, patience: .seconds(1)).answer else {
            Issue.record("it was found")
            return
        }
        // The call's own time is fifteen seconds.
        #expect(reason.contains("within 1.0 seconds"))
        #expect(ContinuousClock.now - began >= .seconds(1))
    }

    @Test func `an address in a private network is not called`() async throws {
        let (answer, backend) = try await fetch(whole("{}"), isPrivateAllowed: false)
        #expect(body(answer) == nil && backend.connections == 0)
    }
}
