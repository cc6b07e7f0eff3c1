import CarillonCore
import NIOHTTP1
import NIOPosix
import Testing

@testable import CarillonServer

/// Requests over true sockets.
@Suite(.timeLimit(.minutes(5)))
struct ApprovalHookCallerTests {
    private func ask(
        _ answer: ScriptedBackend.Answer, isPrivateAllowed: Bool = true
    ) async throws -> (answer: ApprovalHookCaller.Answer, backend: ScriptedBackend) {
        let authority = try TestAuthority()
        let backend = try await ScriptedBackend.start(
            answer, tls: authority.serverContext(names: [], addresses: [[127, 0, 0, 1]]))
        var settings = OutwardSettings()
        settings.rules.allowsPrivate = isPrivateAllowed
        settings.authorityFile = try authority.file()
        // Longer than the time limit of the suite.
        settings.answerSeconds = 3600
        let group = MultiThreadedEventLoopGroup.singleton
        let resolver = NameResolver(group: group, lookup: settings.lookup)
        defer { resolver.shutdown() }
        let caller = ApprovalHookCaller.over(try OutwardCaller(group: group, resolver: resolver, settings: settings))
        let question = ApprovalHookCaller.Question(
            address: try CallAddress("https://127.0.0.1:\(backend.port)/veto"), headers: [("webhook-id", "1")],
            body: Array("{}".utf8))
        var found = await caller.ask(question)
        if case .stall = answer { return (found, backend) }
        // A busy machine can need more than the two seconds.
        for _ in 0..<20 {
            guard case .failed(let reason) = found, reason.hasPrefix("no complete answer") else { break }
            found = await caller.ask(question)
        }
        return (found, backend)
    }

    private func isFailed(_ answer: ApprovalHookCaller.Answer) -> Bool { if case .failed = answer { true } else { false } }

    @Test func `a request to an approval hook is posted, and its answer is read with its body`() async throws {
        let (answer, backend) = try await ask(.bytes("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nabcd"))
        #expect(answer == .answered(status: 403, body: Array("abcd".utf8)))
        let request = try #require(backend.received.first)
        #expect(request.head.method == .POST && request.head.uri == "/veto")
        #expect(request.head.headers["webhook-id"] == ["1"] && request.body == Array("{}".utf8))
    }

    @Test func `an answer has 4,096 bytes at most`() async throws {
        func text(_ count: Int) -> ScriptedBackend.Answer {
            .bytes("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n\(String(repeating: "x", count: count))")
        }
        #expect(
            try await ask(text(4096)).answer
                == .answered(status: 200, body: Array(repeating: UInt8(ascii: "x"), count: 4096)))
        #expect(isFailed(try await ask(text(4097)).answer))
        #expect(isFailed(try await ask(.flood("HTTP/1.1 200 OK\r\n\r\n", piece: 65_536)).answer))
    }

    @Test(arguments: [("120", .seconds(120)), ("7200", .seconds(3600)), ("soon", nil)] as [(String, Duration?)])
    func `the wait in a refusal is read, up to an hour`(_ value: String, _ wait: Duration?) async throws {
        let refusal = ScriptedBackend.Answer.status(503, headers: "Retry-After: \(value)\r\n")
        #expect(try await ask(refusal).answer == .answered(status: 503, body: [], wait: wait))
    }

    @Test func `the time limit is two seconds`() async throws {
        let clock = ContinuousClock()
        let start = clock.now
        #expect(isFailed(try await ask(.stall("")).answer))
        #expect(clock.now - start > .milliseconds(1900))
    }

    @Test func `a private address is called only if the operator allows it`() async throws {
        let (answer, backend) = try await ask(.status(200), isPrivateAllowed: false)
        #expect(isFailed(answer) && backend.received.isEmpty)
    }
}
