import CarillonCore
import CarillonWire
import NIOCore
import NIOHTTP1
import Testing

@testable import CarillonServer

struct RequestMachineTests {
    private typealias Action = RequestMachine.Action

    private var machine = RequestMachine(settings: .init(), at: 0)

    private static let handshake: HTTPHeaders = [
        "upgrade": "websocket", "connection": "keep-alive, Upgrade", "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    ]

    private func head(
        _ method: HTTPMethod = .POST, _ uri: String = "/push/x", _ headers: HTTPHeaders = [:],
        _ version: HTTPVersion = .http1_1
    ) -> HTTPRequestHead {
        var headers = headers
        headers.add(name: "host", value: "h")
        return HTTPRequestHead(version: version, method: method, uri: uri, headers: headers)
    }

    private mutating func receive(_ part: HTTPServerRequestPart) -> Action {
        machine.received(part, admitsSocket: { true })
    }

    /// A whole request, up to the point where it is being answered.
    private mutating func receiveWhole(_ head: HTTPRequestHead, _ body: String = "") -> Action {
        _ = receive(.head(head))
        if !body.isEmpty { _ = receive(.body(ByteBuffer(string: body))) }
        let action = receive(.end(nil))
        _ = machine.readCompleted(at: 0, bytes: 0)
        return action
    }

    private func code(_ action: Action) -> ErrorCode? {
        if case .refuse(let refusal) = action { refusal.code } else { nil }
    }

    // MARK: Requests

    @Test mutating func `a request is answered when it is whole, and the connection stays`() {
        #expect(receive(.head(head())) == .none)
        #expect(receive(.body(ByteBuffer(string: "ab"))) == .none)
        #expect(receive(.body(ByteBuffer(string: "c"))) == .none)
        let whole = RequestMachine.Body.whole(ByteBuffer(string: "abc"))
        #expect(receive(.end(nil)) == .answer(.init(head: head(), body: whole)))
        #expect(machine.answerBegan(hasLength: true) == nil)
        #expect(machine.answerEnded(at: 1) == .open)
        #expect(machine.wantsToRead)
    }

    @Test(arguments: [
        (HTTPMethod.GET, "/health/live", true), (.HEAD, "/health/ready", true), (.GET, "/health/ready?x", true),
        (.OPTIONS, "/", true), (.OPTIONS, "*", true), (.OPTIONS, "/v1/apps", false), (.OPTIONS, "/health/live", false),
        (.GET, "/", false), (.HEAD, "/", false), (.POST, "/health/live", false), (.GET, "/health", false),
    ])
    mutating func `only health checks are answered on a connection that has no place`(
        method: HTTPMethod, uri: String, isAnswered: Bool
    ) {
        machine.foundNoPlace(.serverFull, at: 0)
        let isRefused = code(receive(.head(head(method, uri)))) == .overloaded
        #expect(isRefused != isAnswered)
        guard isAnswered else { return }
        guard case .answer = receive(.end(nil)) else {
            Issue.record("The request is not answered.")
            return
        }
        // A health check has no body.
        machine = RequestMachine(settings: .init(), at: 0)
        machine.foundNoPlace(.serverFull, at: 0)
        #expect(code(receive(.head(head(method, uri, ["content-length": "1"])))) == .overloaded)
    }

    @Test mutating func `a body beyond its limit is answered at once, and the rest is not read`() {
        _ = receive(.head(head()))
        _ = receive(.body(ByteBuffer(repeating: 1, count: Limits.messageBodyBytes)))
        #expect(
            receive(.body(ByteBuffer(string: "x")))
                == .answer(.init(head: head(), body: .tooLarge(limit: Limits.messageBodyBytes))))
        #expect(!machine.wantsToRead)
        #expect(receive(.body(ByteBuffer(string: "y"))) == .none)
        #expect(machine.answerBegan(hasLength: true) == "close")
        #expect(machine.answerEnded(at: 1) == .lingering)
    }

    @Test(arguments: [
        ("/push/x", Limits.messageBodyBytes), ("/v1/apps", Limits.apiBodyBytes), ("/push/x/watch", Limits.apiBodyBytes),
        ("/_matrix/push/v1/notify", Limits.matrixBodyBytes), ("/_matrix/push/v1/notify?up=1", Limits.matrixBodyBytes),
    ])
    mutating func `a body that is announced too large is not requested`(uri: String, limit: Int) {
        let fits = head(.POST, uri, ["content-length": "\(limit)", "expect": "100-continue"])
        var other = self
        #expect(other.receive(.head(fits)) == .sendContinue)
        let tooLarge = head(.POST, uri, ["content-length": "\(limit + 1)", "expect": "100-continue"])
        #expect(receive(.head(tooLarge)) == .answer(.init(head: tooLarge, body: .tooLarge(limit: limit))))
    }

    @Test(arguments: ["gzip, chunked", "gzip", "chunked, chunked", "identity", "", "chunked,", "  "])
    mutating func `a transfer coding that is not understood is refused`(coding: String) {
        #expect(code(receive(.head(head(.POST, "/push/x", ["transfer-encoding": coding])))) == .requestInvalid)
    }

    @Test(
        arguments: [
            ("http://h:80/push/x?y", "/push/x?y"), ("https://h", "/"), ("http://h?y", "/?y"), ("/a://b", "/a:/b"),
            ("*", "*"), ("//push//x", "/push/x"), ("/push/x/", "/push/x"), ("/push/x//?y=//", "/push/x?y=//"), ("///", "/"),
            ("//?y", "/?y"), ("http://h//push/x/", "/push/x"),
        ])
    mutating func `the spellings of a target are one`(uri: String, path: String) {
        guard case .answer(let request) = receiveWhole(head(.GET, uri)) else {
            Issue.record("it was not passed to the routes")
            return
        }
        #expect(request.head.uri == path)
    }

    @Test mutating func `a client of HTTP 1_0 is informed that the connection stays, unless the length is unknown`() {
        _ = receiveWhole(head(.GET, "/", ["connection": "keep-alive"], .http1_0))
        var other = machine
        #expect(machine.answerBegan(hasLength: true) == "keep-alive")
        #expect(machine.answerEnded(at: 0) == .open)
        #expect(other.answerBegan(hasLength: false) == "close")
        #expect(other.answerEnded(at: 0) == .flushed)
    }

    @Test(arguments: [("60 \t", "60"), (" \t ", ""), ("\t a b", "a b"), ("a b ", "a b"), ("a", "a"), ("", "")])
    mutating func `white space around a field's value belongs to no value`(value: String, meant: String) {
        guard case .answer(let request) = receiveWhole(head(.POST, "/push/x", ["ttl": value, "x": "y"])) else {
            Issue.record("it was not passed to the routes")
            return
        }
        #expect(request.head.headers["ttl"] == [meant])
        #expect(request.head.headers["x"] == ["y"])
    }

    @Test mutating func `the answer to HEAD has no body, and the next one has`() {
        _ = receiveWhole(head(.HEAD, "/"))
        #expect(machine.isHead)
        _ = machine.answerEnded(at: 0)
        _ = receiveWhole(head(.GET, "/"))
        #expect(!machine.isHead)
    }

    // MARK: Data that the parser skips

    @Test(arguments: [("/push/x", Limits.messageBodyBytes), ("/v1/apps", Limits.apiBodyBytes)])
    mutating func `chunk extensions are bounded in bytes`(uri: String, limit: Int) {
        let most = ConnectionLimits.headBytes + ConnectionLimits.bytesOnWirePerByte * limit
        _ = receive(.head(head(.POST, uri, ["transfer-encoding": "chunked"])))
        #expect(machine.readCompleted(at: 0, bytes: 200_000_000) == .none)
        for _ in 0..<4 {
            _ = receive(.body(ByteBuffer(string: "x")))
            #expect(machine.readCompleted(at: 0, bytes: most / 4) == .none)
        }
        #expect(code(machine.readCompleted(at: 0, bytes: 4)) == .bodyTooLarge)
        #expect(machine.readCompleted(at: 0, bytes: 4) == .none)
    }

    @Test mutating func `a body in chunks of one byte is read`() {
        _ = receive(.head(head(.POST, "/push/x", ["transfer-encoding": "chunked"])))
        #expect(machine.readCompleted(at: 0, bytes: 100) == .none)
        for _ in 0..<Limits.messageBodyBytes {
            _ = receive(.body(ByteBuffer(string: "x")))
            #expect(machine.readCompleted(at: 0, bytes: 6) == .none)
        }
        guard case .answer = receive(.end(nil)) else {
            Issue.record("it was not passed to the routes")
            return
        }
    }

    @Test mutating func `data before a head is limited in bytes, and counts anew with each request`() {
        let most = 2 * ConnectionLimits.headBytes
        for _ in 0..<3 {
            #expect(machine.readCompleted(at: 0, bytes: most) == .none)
            _ = receiveWhole(head(.GET, "/"))
            _ = machine.answerEnded(at: 0)
        }
        #expect(machine.readCompleted(at: 0, bytes: most) == .none)
        #expect(code(machine.readCompleted(at: 0, bytes: 1)) == .headersTooLarge)
    }

    @Test mutating func `endless white space behind a request is not read`() {
        _ = receiveWhole(head(.GET, "/"))
        #expect(machine.readCompleted(at: 0, bytes: 2 * ConnectionLimits.headBytes) == .none)
        #expect(machine.wantsToRead)
        #expect(machine.readCompleted(at: 0, bytes: 1) == .none)
        #expect(!machine.wantsToRead)
        #expect(machine.answerEnded(at: 0) == .flushed)
    }

    // MARK: Pipelining

    @Test mutating func `requests that arrive before the answer wait, in order, and no more is read`() {
        _ = receiveWhole(head(.GET, "/1"))
        for uri in ["/2", "/3"] {
            #expect(receive(.head(head(.GET, uri))) == .none)
            #expect(receive(.end(nil)) == .none)
        }
        #expect(!machine.wantsToRead)
        var answered: [String] = []
        while machine.answerEnded(at: 0) == .open {
            while let action = machine.bufferedAction(at: 0, admitsSocket: { true }) {
                if case .answer(let request) = action { answered.append(request.head.uri) }
            }
            if answered.count == 2 { break }
        }
        #expect(answered == ["/2", "/3"])
        _ = machine.answerEnded(at: 0)
        _ = machine.bufferedAction(at: 0, admitsSocket: { true })
        #expect(machine.wantsToRead)
    }

    @Test mutating func `nonsense behind a good request leaves it its answer, and is refused then`() {
        _ = receiveWhole(head(.GET, "/1"))
        #expect(machine.received(HTTPParserError.invalidMethod, at: 0) == .none)
        #expect(machine.answerEnded(at: 0) == .open)
        #expect(code(machine.bufferedAction(at: 0, admitsSocket: { true }) ?? .none) == .requestInvalid)
    }

    // MARK: Sockets

    @Test mutating func `a good handshake leaves HTTP`() {
        let good = head(.GET, "/?x=1", Self.handshake)
        #expect(receiveWhole(good) == .upgrade(good))
    }

    @Test(
        arguments: [
            ("upgrade", "h2c"), ("connection", "keep-alive"), ("sec-websocket-version", "8"), ("content-length", "5"),
        ])
    mutating func `any other handshake is a request like others, and the last`(name: String, value: String) {
        var headers = Self.handshake
        headers.replaceOrAdd(name: name, value: value)
        guard case .answer = receiveWhole(head(.GET, "/", headers)) else {
            Issue.record("it was not passed to the routes")
            return
        }
        #expect(machine.answerBegan(hasLength: true) == "close")
    }

    @Test(arguments: ["short", "", "AAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA", "*AAAAAAAAAAAAAAAAAAAAA==", nil])
    mutating func `a handshake without a good key is refused`(key: String?) {
        var headers = Self.handshake
        headers.remove(name: "sec-websocket-key")
        if let key { headers.add(name: "sec-websocket-key", value: key) }
        #expect(code(receiveWhole(head(.GET, "/", headers))) == .requestInvalid)
    }

    @Test mutating func `a handshake with two keys is refused`() {
        var headers = Self.handshake
        headers.add(name: "sec-websocket-key", value: "AAAAAAAAAAAAAAAAAAAAAA==")
        #expect(code(receiveWhole(head(.GET, "/", headers))) == .requestInvalid)
    }

    @Test func `a handshake of a page that is not allowed is refused`() throws {
        for (origin, isGood) in [("https://a.example", true), ("https://evil.example", false)] {
            var tests = self
            let origins = try AllowedOrigins(publicURLs: PublicURLs("https://push.example"), listing: "https://a.example")
            tests.machine = RequestMachine(settings: .init(), origins: origins, at: 0)
            var headers = Self.handshake
            headers.add(name: "origin", value: origin)
            let action = tests.receiveWhole(head(.GET, "/", headers))
            #expect(isGood ? action == .upgrade(head(.GET, "/", headers)) : code(action) == .originForbidden)
        }
    }

    @Test mutating func `a handshake beyond the limit of sockets is passed to the routes`() {
        _ = receive(.head(head(.GET, "/", Self.handshake)))
        guard case .answer = machine.received(.end(nil), admitsSocket: { false }) else {
            Issue.record("the socket was let in")
            return
        }
    }

    // MARK: Time

    @Test mutating func `a head that does not come in time is refused`() {
        _ = machine.readCompleted(at: 2, bytes: 0)
        #expect(machine.timePassed(to: 9, .init()) == .none)
        #expect(code(machine.timePassed(to: 10, .init())) == .requestTimeout)
    }

    @Test mutating func `a body that does not come in time is refused`() {
        _ = receive(.head(head()))
        _ = machine.readCompleted(at: 5, bytes: 0)
        _ = receive(.body(ByteBuffer(string: "x")))
        _ = machine.readCompleted(at: 20, bytes: 0)
        #expect(machine.timePassed(to: 34, .init()) == .none)
        #expect(code(machine.timePassed(to: 35, .init())) == .requestTimeout)
    }

    @Test mutating func `an idle connection is closed, and one on which a head began is refused`() {
        _ = receiveWhole(head())
        _ = machine.answerEnded(at: 100)
        var other = machine
        #expect(machine.timePassed(to: 174, .init()) == .none)
        #expect(machine.timePassed(to: 175, .init()) == .finish)
        _ = other.readCompleted(at: 150, bytes: 0)
        #expect(code(other.timePassed(to: 160, .init())) == .requestTimeout)
    }

    @Test mutating func `a request that the routes do not answer in time is refused, and their answer is discarded`() {
        _ = receiveWhole(head())
        #expect(machine.nextDeadline == 30 && machine.owesAnswer)
        #expect(machine.timePassed(to: 29, .init()) == .none)
        #expect(code(machine.timePassed(to: 30, .init())) == .notFinished)
        #expect(!machine.owesAnswer && !machine.mayNotify)
        #expect(machine.refused(at: 30) == .lingering)
        #expect(machine.timePassed(to: 32, .init()) == .close)
    }

    @Test mutating func `an answer that began may go on for as long as it likes`() {
        _ = receiveWhole(head(.GET, "/v1/inbox/events"))
        _ = machine.answerBegan(hasLength: false)
        #expect(machine.nextDeadline == nil)
        #expect(machine.timePassed(to: 1000, .init()) == .none)
        _ = machine.answerEnded(at: 1000)
        // The next one has a time of its own.
        _ = receive(.head(head()))
        _ = receive(.end(nil))
        _ = machine.readCompleted(at: 1010, bytes: 0)
        #expect(machine.timePassed(to: 1039, .init()) == .none)
        #expect(code(machine.timePassed(to: 1040, .init())) == .notFinished)
    }

    @Test func `requests that wait, and requests with much data, have more time`() {
        for (line, seconds) in [
            (head(.POST, "/v1/inbox"), 330), (head(.GET, "/v1/inbox?wait=300"), 330), (head(.GET, "/v1/inboxes"), 30),
            (head(.POST, "/v1/items/updates"), 330), (head(.POST, "/v1/attachments"), 330),
        ] {
            var tests = self
            _ = tests.receiveWhole(line)
            #expect(tests.machine.timePassed(to: seconds - 1, .init()) == .none, "\(line.uri)")
            #expect(tests.code(tests.machine.timePassed(to: seconds, .init())) == .notFinished, "\(line.uri)")
        }
    }

    @Test mutating func `each of concurrent requests has its own time`() {
        for _ in 0..<2 {
            _ = receive(.head(head()))
            _ = receive(.end(nil))
        }
        _ = machine.readCompleted(at: 0, bytes: 0)
        _ = machine.answerBegan(hasLength: true)
        #expect(machine.answerEnded(at: 20) == .open)
        while let action = machine.bufferedAction(at: 20, admitsSocket: { true }) {
            if case .answer = action { break }
        }
        #expect(machine.nextDeadline == 50)
    }

    @Test mutating func `a peer that reads nothing is disconnected`() {
        _ = receiveWhole(head())
        _ = machine.answerBegan(hasLength: true)
        machine.wrote(.init(sent: 10, waiting: 5), at: 100)
        #expect(machine.timePassed(to: 129, .init(sent: 10, waiting: 5)) == .none)
        #expect(machine.timePassed(to: 130, .init(sent: 10, waiting: 5)) == .stalled)
    }

    @Test func `the times are settings`() {
        var settings = RequestMachine.Settings()
        settings.headSeconds = 2
        settings.bodySeconds = 3
        settings.answerSeconds = 6
        settings.idleSeconds = 4
        settings.stallSeconds = 5
        var tests = self
        tests.machine = RequestMachine(settings: settings, at: 0)
        #expect(tests.machine.nextDeadline == 2)
        _ = tests.receive(.head(head()))
        _ = tests.machine.readCompleted(at: 10, bytes: 1)
        #expect(tests.machine.nextDeadline == 13)
        _ = tests.receive(.end(nil))
        _ = tests.machine.readCompleted(at: 11, bytes: 0)
        #expect(tests.machine.nextDeadline == 17)
        _ = tests.machine.answerBegan(hasLength: true)
        tests.machine.wrote(.init(sent: 0, waiting: 1), at: 20)
        #expect(tests.machine.nextDeadline == 25)
        #expect(tests.machine.answerEnded(at: 18) == .open)
        #expect(tests.machine.nextDeadline == 22)
    }

    @Test mutating func `a peer that is slow and reads enough is waited for`() {
        _ = receiveWhole(head())
        _ = machine.answerBegan(hasLength: true)
        machine.wrote(.init(sent: 0, waiting: 100_000), at: 0)
        for round in 1...10 {
            let sent = round * StallClock.minimumBytes
            #expect(machine.timePassed(to: 30 * round, .init(sent: sent, waiting: 100_000 - sent)) == .none)
        }
        #expect(machine.timePassed(to: 330, .init(sent: 100_000, waiting: 0)) == .none)
        #expect(machine.nextDeadline == nil)
    }

    @Test mutating func `a peer that reads a byte now and then does not count as a reader`() {
        _ = receiveWhole(head())
        _ = machine.answerBegan(hasLength: true)
        machine.wrote(.init(sent: 0, waiting: 100_000), at: 0)
        let trickled = StallClock.minimumBytes - 1
        #expect(machine.timePassed(to: 30, .init(sent: trickled, waiting: 100_000 - trickled)) == .stalled)
    }

    @Test mutating func `data that was due and was read counts, whatever waits since`() {
        _ = receiveWhole(head())
        _ = machine.answerBegan(hasLength: true)
        machine.wrote(.init(sent: 0, waiting: 10), at: 0)
        #expect(machine.timePassed(to: 30, .init(sent: 10, waiting: 10)) == .none)
        #expect(machine.timePassed(to: 60, .init(sent: 19, waiting: 1)) == .stalled)
    }

    @Test mutating func `while answers pile up, nothing more is read or answered`() {
        _ = receiveWhole(head(.GET, "/1"))
        _ = receive(.head(head(.GET, "/2")))
        _ = receive(.end(nil))
        machine.writabilityChanged(false)
        _ = machine.answerEnded(at: 0)
        #expect(machine.bufferedAction(at: 0, admitsSocket: { true }) == nil)
        #expect(!machine.wantsToRead)
        machine.writabilityChanged(true)
        #expect(machine.bufferedAction(at: 0, admitsSocket: { true }) != nil)
    }

    @Test(arguments: [(.CONNECT, [:]), (.GET, ["upgrade": "x"])] as [(HTTPMethod, HTTPHeaders)])
    mutating func `behind a request that ends the parsing nothing is read`(method: HTTPMethod, headers: HTTPHeaders) {
        _ = receiveWhole(head(method, "/", headers))
        #expect(!machine.wantsToRead)
        #expect(machine.answerBegan(hasLength: true) == "close")
    }

    @Test mutating func `a request that was begun behind another has its time, too`() {
        _ = receiveWhole(head(.GET, "/1"))
        _ = receive(.head(head()))
        _ = machine.answerEnded(at: 5)
        while machine.bufferedAction(at: 5, admitsSocket: { true }) != nil {}
        #expect(code(machine.timePassed(to: 35, .init())) == .requestTimeout)
    }

    @Test func `a request of HTTP 1_1 names one host`() {
        var machine = machine
        let nameless = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        #expect(code(machine.received(.head(nameless), admitsSocket: { true })) == .requestInvalid)
        var old = self.machine
        let head = HTTPRequestHead(version: .http1_0, method: .GET, uri: "/")
        #expect(old.received(.head(head), admitsSocket: { true }) == .none)
    }

    // MARK: The end

    @Test mutating func `a stop closes waiting connections, and lets an answer finish`() {
        var waiting = machine
        #expect(waiting.stopped(at: 3) == .finish)
        _ = receiveWhole(head())
        #expect(machine.stopped(at: 3) == .none)
        #expect(machine.answerBegan(hasLength: true) == "close")
        #expect(machine.answerEnded(at: 3) == .flushed)
    }

    @Test mutating func `a stop leaves a request that is being read two seconds`() {
        _ = receive(.head(head()))
        _ = machine.readCompleted(at: 0, bytes: 0)
        #expect(machine.stopped(at: 3) == .none)
        #expect(code(machine.timePassed(to: 5, .init())) == .requestTimeout)
    }

    @Test mutating func `a peer that ended its side gets every requested answer, and half a request is none`() {
        var half = self
        _ = half.receive(.head(head()))
        #expect(half.code(half.machine.inputEnded(at: 0)) == .bodyIncomplete)
        _ = receiveWhole(head(.GET, "/1"))
        _ = receive(.head(head(.GET, "/2")))
        _ = receive(.end(nil))
        #expect(machine.inputEnded(at: 0) == .none)
        #expect(machine.answerEnded(at: 0) == .open)
        #expect(machine.bufferedAction(at: 0, admitsSocket: { true }) == Action.none)
        guard case .answer? = machine.bufferedAction(at: 0, admitsSocket: { true }) else {
            Issue.record("the second request was dropped")
            return
        }
        #expect(machine.answerEnded(at: 0) == .open)
        #expect(machine.bufferedAction(at: 0, admitsSocket: { true }) == .finish)
    }

    @Test mutating func `a completed answer is sent before the connection closes`() {
        #expect(machine.inputEnded(at: 0) == .finish)
        #expect(machine.timePassed(to: 1, .init(sent: 1, waiting: 9)) == .none)
        #expect(machine.timePassed(to: 2, .init(sent: 10, waiting: 0)) == .close)
    }

    @Test mutating func `data that is not HTTP is refused with its code, once`() {
        var long = machine
        #expect(code(long.received(HTTPParserError.headerOverflow, at: 0)) == .headersTooLarge)
        #expect(code(machine.received(HTTPParserError.invalidMethod, at: 0)) == .requestInvalid)
        #expect(machine.received(HTTPParserError.invalidMethod, at: 0) == .none)
        #expect(machine.refused(at: 1) == .lingering)
        #expect(machine.timePassed(to: 3, .init()) == .close)
    }
}
