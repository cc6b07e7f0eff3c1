import CarillonCore
import CarillonWire
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing

@testable import CarillonServer

/// Calls over true sockets, each to a backend that does one thing wrong.
@Suite(.timeLimit(.minutes(5)))
struct OutwardCallerTests {
    /// The addresses of names, and how often each name was resolved.
    private final class Names: Sendable {
        private let answers: Mutex<[String: [[String]]]>
        private let asked = Mutex<[String]>([])

        /// - Parameter answers: for each name its addresses the first time, the second time, and so on.
        init(_ answers: [String: [[String]]]) { self.answers = Mutex(answers) }

        var questions: [String] { asked.withLock { $0 } }

        var lookup: NameLookup {
            NameLookup { name in
                self.asked.withLock { $0.append(name) }
                return self.answers.withLock { answers in
                    guard var turns = answers[name], let turn = turns.first else { return .notFound("no such name") }
                    if turns.count > 1 { turns.removeFirst() }
                    answers[name] = turns
                    return .addresses(turn.compactMap { NetworkAddress($0) })
                }
            }
        }
    }

    private func call(
        _ text: String, _ names: Names = Names(["back.example": [["127.0.0.1"]]]), isPrivateAllowed: Bool = true,
        authority: TestAuthority? = nil, answerSeconds: Int = 15
    ) async throws -> CallResult {
        var settings = OutwardSettings()
        settings.rules.allowsPrivate = isPrivateAllowed
        settings.answerSeconds = answerSeconds
        settings.lookup = names.lookup
        settings.authorityFile = try authority?.file()
        let group = MultiThreadedEventLoopGroup.singleton
        let resolver = NameResolver(group: group, lookup: settings.lookup)
        defer { resolver.shutdown() }
        let caller = try OutwardCaller(group: group, resolver: resolver, settings: settings)
        return await caller.call(
            .init(address: try CallAddress(text), headers: [("webhook-id", "msg_1")], body: Array("{}".utf8)))
    }

    private func failure(_ result: CallResult) -> PingFailure? {
        if case .failed(let failure, _) = PingVerdict(result) { failure } else { nil }
    }

    // MARK: Sent requests

    @Test func `a call is one POST with the requested headers and body, and nothing else`() async throws {
        let backend = try await ScriptedBackend.start()
        #expect(try await call("http://back.example:\(backend.port)/a/b?c=d") == .answered(status: 204))
        let request = try #require(backend.received.first)
        #expect(request.head.method == .POST)
        #expect(request.head.uri == "/a/b?c=d")
        #expect(request.text == "{}")
        #expect(
            request.head.headers.map { $0.name.lowercased() }.sorted()
                == ["connection", "content-length", "content-type", "host", "user-agent", "webhook-id"])
        #expect(request.head.headers["host"] == ["back.example:\(backend.port)"])
    }

    @Test func `TLS uses the name of the address, or its number, as in the certificate`() async throws {
        let authority = try TestAuthority()
        let backend = try await ScriptedBackend.start(
            tls: authority.serverContext(names: ["back.example"], addresses: [[127, 0, 0, 1]]))
        #expect(
            try await call("https://back.example:\(backend.port)", authority: authority) == .answered(status: 204))
        #expect(try await call("https://127.0.0.1:\(backend.port)", authority: authority) == .answered(status: 204))
    }

    @Test(arguments: [("120", .seconds(120)), ("1.5", .seconds(2)), ("tomorrow", nil)] as [(String, Duration?)])
    func `the wait in an answer is read`(_ value: String, _ wait: Duration?) async throws {
        let backend = try await ScriptedBackend.start(.status(503, headers: "Retry-After: \(value)\r\n"))
        let result = try await call("http://back.example:\(backend.port)")
        #expect(result == .answered(status: 503, retryAfter: wait))
    }

    // MARK: 600 and 601

    @Test func `600: an unknown name`() async throws {
        #expect(failure(try await call("http://nobody.example")) == .nameNotResolved)
    }

    @Test func `600: a reserved name that the system's resolver does not know`() {
        guard case .notFound = NameLookup.system.ask("no-such-name.invalid") else {
            Issue.record("it was resolved")
            return
        }
        guard case .addresses(let addresses) = NameLookup.system.ask("localhost") else {
            Issue.record("localhost was not resolved")
            return
        }
        #expect(addresses.allSatisfy { !$0.isPublic })
    }

    @Test func `601: nobody listens`() async throws {
        let port = try ClosedPort()
        #expect(failure(try await call("http://back.example:\(port.number)")) == .noConnection)
        withExtendedLifetime(port) {}
    }

    @Test func `601: TLS with a server that does not speak it`() async throws {
        let backend = try await ScriptedBackend.start()
        #expect(failure(try await call("https://back.example:\(backend.port)")) == .noConnection)
    }

    // MARK: 602

    enum Certificate: CaseIterable, Sendable {
        case expired, notYetValid, ofAnotherName, ofAnotherAddress, ofAnUnknownAuthority
    }

    @Test(arguments: Certificate.allCases)
    func `602: a certificate that is not valid`(certificate: Certificate) async throws {
        let authority = try TestAuthority()
        let context =
            switch certificate {
            case .expired: try authority.serverContext(names: ["back.example"], from: -7200, until: -3600)
            case .notYetValid: try authority.serverContext(names: ["back.example"], from: 3600, until: 7200)
            case .ofAnotherName: try authority.serverContext(names: ["other.example"])
            case .ofAnotherAddress: try authority.serverContext(names: ["127.0.0.1"], addresses: [[127, 0, 0, 2]])
            case .ofAnUnknownAuthority: try TestAuthority().serverContext(names: ["back.example"])
            }
        let backend = try await ScriptedBackend.start(tls: context)
        let host = certificate == .ofAnotherAddress ? "127.0.0.1" : "back.example"
        #expect(failure(try await call("https://\(host):\(backend.port)", authority: authority)) == .badCertificate)
        #expect(backend.received.isEmpty)
    }

    // MARK: 603

    @Test(arguments: [
        ScriptedBackend.Answer.stall(""), .stall("HTTP/1.1 200 OK\r\n"),
        .stall("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
        .stall("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .stall("HTTP/1.1 100 Continue\r\n\r\n"),
        .trickle("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Slow: yes\r\n\r\n"),
    ])
    func `603: an answer that does not come, or does not end`(answer: ScriptedBackend.Answer) async throws {
        let backend = try await ScriptedBackend.start(answer)
        #expect(failure(try await call("http://back.example:\(backend.port)", answerSeconds: 1)) == .noAnswerInTime)
    }

    @Test func `603: TLS that does not begin`() async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listener.localAddress?.port)
        #expect(failure(try await call("https://back.example:\(port)", answerSeconds: 1)) == .noAnswerInTime)
        try await listener.close()
    }

    // MARK: 604 and 605

    @Test(arguments: [
        ScriptedBackend.Answer.status(500), .status(404), .status(400), .status(401), .status(304),
        .bytes("this is not HTTP\r\n\r\n"), .bytes("\u{0}\u{1}\u{2}"), .bytes(""), .bytes("HTTP/1.1 200 OK\r\n"),
        .bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), .bytes("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
        .bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        .bytes("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        .flood("HTTP/1.1 200 OK\r\n\r\n", piece: 65_536),
        .flood("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", piece: 65_536),
        .flood("HTTP/1.1 200 OK\r\nX-Long: ", piece: 1000), .flood("", piece: 1000),
        .bytes("HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n" + String(repeating: "x", count: 16_384)),
    ])
    func `604: an answer that is missing, cut, too large, or an error`(
        answer: ScriptedBackend.Answer
    ) async throws {
        let backend = try await ScriptedBackend.start(answer)
        let result = try await call("http://back.example:\(backend.port)")
        #expect(failure(result) == .invalidAnswer, "\(result)")
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `604: a redirect, which is not followed`(status: Int) async throws {
        let other = try await ScriptedBackend.start()
        let backend = try await ScriptedBackend.start(
            .status(status, headers: "Location: http://127.0.0.1:\(other.port)/\r\n"))
        #expect(failure(try await call("http://back.example:\(backend.port)")) == .invalidAnswer)
        #expect(backend.connections == 1)
        #expect(other.connections == 0)
    }

    @Test func `605: a backend that reports the token as lost`() async throws {
        let backend = try await ScriptedBackend.start(.status(410))
        #expect(failure(try await call("http://back.example:\(backend.port)")) == .tokenLost)
    }

    @Test(arguments: [
        ScriptedBackend.Answer.status(200), .status(299),
        .bytes("HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n" + String(repeating: "x", count: 16_000)),
        .bytes("HTTP/1.0 200 OK\r\n\r\nuntil the end"),
        .bytes("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
        .bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    ])
    func `every whole answer of 2xx is well`(answer: ScriptedBackend.Answer) async throws {
        let backend = try await ScriptedBackend.start(answer)
        #expect(PingVerdict(try await call("http://back.example:\(backend.port)")) == .well)
    }

    @Test func `a lease outlasts the longest call`() {
        #expect(WorkLease.seconds * 1000 > OutwardSettings.longestCallMilliseconds + 1000)
        #expect(OutwardSettings().answerSeconds <= OutwardSettings.longestAnswerSeconds)
    }

    // MARK: The guard

    @Test(arguments: [
        "127.0.0.1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "0.0.0.0", "64:ff9b::7f00:1",
    ])
    func `a private address behind a public name is not connected to`(address: String) async throws {
        let backend = try await ScriptedBackend.start()
        let names = Names(["back.example": [[address]]])
        let result = try await call("http://back.example:\(backend.port)", names, isPrivateAllowed: false)
        #expect(failure(result) == .noConnection)
        guard case .failed(_, let detail) = result else { return }
        #expect(detail.contains("private"))
        #expect(!detail.contains(address))
        #expect(backend.connections == 0)
    }

    @Test(arguments: ["http://127.0.0.1", "http://[::1]", "http://[::ffff:127.0.0.1]", "http://0.0.0.0"])
    func `a private address that was stored while it was allowed is not connected to any more`(text: String) async throws {
        let backend = try await ScriptedBackend.start()
        #expect(failure(try await call("\(text):\(backend.port)", isPrivateAllowed: false)) == .noConnection)
        #expect(backend.connections == 0)
    }

    #if os(Linux)
        /// Two backends of one port: only the address distinguishes them.
        @Test func `a name is resolved once a call, and the call goes to the resolved address`() async throws {
            let first = try await ScriptedBackend.start(.status(201))
            let second = try await ScriptedBackend.start(.status(202), host: "127.0.0.2", port: first.port)
            let names = Names(["back.example": [["127.0.0.1"], ["127.0.0.2"]]])
            #expect(try await call("http://back.example:\(first.port)", names) == .answered(status: 201))
            #expect(names.questions == ["back.example"])
            #expect(second.connections == 0)
            #expect(try await call("http://back.example:\(first.port)", names) == .answered(status: 202))
            #expect(names.questions.count == 2)
        }

        @Test func `an address that nobody answers at does not hide another one`() async throws {
            let backend = try await ScriptedBackend.start(.status(202), host: "127.0.0.2")
            let names = Names(["back.example": [["127.0.0.77", "127.0.0.2"]]])
            #expect(try await call("http://back.example:\(backend.port)", names) == .answered(status: 202))
        }
    #endif

    @Test func `a name that resolves differently the second time is checked the second time`() async throws {
        let backend = try await ScriptedBackend.start()
        let names = Names(["back.example": [["192.0.2.1"], ["127.0.0.1"]]])
        for _ in 0..<3 {
            let result = try await call("http://back.example:\(backend.port)", names, isPrivateAllowed: false)
            #expect(failure(result) == .noConnection)
        }
        #expect(names.questions.count == 3)
        #expect(backend.connections == 0)
    }
}
