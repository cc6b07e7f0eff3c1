import CarillonWire
import NIOCore
import NIOHTTP1
import Testing

@testable import CarillonServer

/// Requests with a body of any length.
struct StreamedRequestTests {
    private typealias Action = RequestMachine.Action

    private var machine = RequestMachine(settings: .init(), at: 0)

    private func head(_ uri: String = "/v1/items/updates", _ headers: HTTPHeaders = [:]) -> HTTPRequestHead {
        var headers = headers
        headers.add(name: "host", value: "h")
        return HTTPRequestHead(version: .http1_1, method: .POST, uri: uri, headers: headers)
    }

    private mutating func receive(_ part: HTTPServerRequestPart) -> Action {
        machine.received(part, admitsSocket: { true })
    }

    private func bytes(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 1, count: count) }

    private func code(_ action: Action) -> ErrorCode? {
        if case .streamBroke(let refusal) = action { refusal.code } else { nil }
    }

    @Test mutating func `the body is delivered as it arrives, and the connection stays`() {
        #expect(receive(.head(head())) == .stream(head()))
        for _ in 0..<100 { #expect(receive(.body(bytes(10_000))) == .streamed(bytes(10_000))) }
        #expect(machine.readCompleted(at: 0, bytes: 1_100_000) == .none)
        #expect(machine.wantsToRead)
        #expect(receive(.end(nil)) == .streamEnded)
        #expect(machine.answerBegan(hasLength: true) == nil)
        #expect(machine.answerEnded(at: 1) == .open)
        let other = head("/v1/items/updates?app=a")
        #expect(receive(.head(other)) == .stream(other))
    }

    @Test mutating func `a body with a long announced length is requested all the same`() {
        let long = head("/v1/items/updates", ["content-length": "100000000", "expect": "100-continue"])
        #expect(receive(.head(long)) == .stream(long))
        // The client address is known when the routes read it.
        #expect(machine.bodyWanted() == .sendContinue)
        #expect(machine.bodyWanted() == .none)
    }

    @Test(arguments: ["/v1/items/updatesx", "/v1/items/updates/x", "/v1/items/a/updates"])
    mutating func `other addresses have the limit of the API`(uri: String) {
        let long = head(uri, ["content-length": "\(Limits.apiBodyBytes + 1)"])
        #expect(receive(.head(long)) == .answer(.init(head: long, body: .tooLarge(limit: Limits.apiBodyBytes))))
    }

    @Test mutating func `while the routes have enough data, nothing is read, and no time passes`() {
        _ = receive(.head(head()))
        _ = receive(.body(bytes(10)))
        machine.bodyFilled()
        #expect(!machine.wantsToRead)
        _ = machine.readCompleted(at: 0, bytes: 10)
        #expect(machine.timePassed(to: 1000, .init(sent: 0, waiting: 0)) == .none)
        machine.bodyTaken(at: 1000)
        #expect(machine.wantsToRead)
        #expect(machine.timePassed(to: 1029, .init(sent: 0, waiting: 0)) == .none)
        #expect(code(machine.timePassed(to: 1030, .init(sent: 0, waiting: 0))) == .requestTimeout)
    }

    @Test mutating func `a stalled body ends, and each part of it renews its time`() {
        _ = receive(.head(head()))
        _ = machine.readCompleted(at: 0, bytes: 100)
        for second in stride(from: 29, through: 290, by: 29) {
            #expect(machine.timePassed(to: second, .init(sent: 0, waiting: 0)) == .none)
            _ = receive(.body(bytes(100)))
            _ = machine.readCompleted(at: second, bytes: 110)
        }
        #expect(code(machine.timePassed(to: 320, .init(sent: 0, waiting: 0))) == .requestTimeout)
        // The routes answer the received part; the rest is not read.
        #expect(!machine.wantsToRead)
        #expect(receive(.body(bytes(10))) == .none)
        #expect(machine.answerBegan(hasLength: true) == "close")
        #expect(machine.answerEnded(at: 321) == .lingering)
    }

    @Test mutating func `chunks that are nearly nothing break it`() {
        _ = receive(.head(head()))
        _ = receive(.body(bytes(1000)))
        #expect(machine.readCompleted(at: 0, bytes: 8000) == .none)
        #expect(machine.readCompleted(at: 0, bytes: ConnectionLimits.headBytes) == .none)
        #expect(code(machine.readCompleted(at: 0, bytes: 1)) == .bodyTooLarge)
    }

    @Test mutating func `a peer that disconnects causes an end that is reported`() {
        _ = receive(.head(head()))
        _ = receive(.body(bytes(10)))
        #expect(code(machine.inputEnded(at: 1)) == .bodyIncomplete)
        #expect(machine.answerEnded(at: 1) == .lingering)
        var other = RequestMachine(settings: .init(), at: 0)
        _ = other.received(.head(head()), admitsSocket: { true })
        #expect(code(other.received(HTTPParserError.invalidChunkSize, at: 1)) == .requestInvalid)
    }

    @Test mutating func `a server that stops allows the body two seconds`() {
        _ = receive(.head(head()))
        #expect(machine.stopped(at: 5) == .none)
        #expect(code(machine.timePassed(to: 7, .init(sent: 0, waiting: 0))) == .stopping)
    }

    @Test mutating func `a server that stops allows two seconds also to a body that continues`() {
        _ = receive(.head(head()))
        #expect(machine.stopped(at: 5) == .none)
        _ = receive(.body(bytes(10)))
        _ = machine.readCompleted(at: 6, bytes: 20)
        #expect(machine.deadline == 7)
        #expect(machine.timePassed(to: 6, .init(sent: 0, waiting: 0)) == .none)
        _ = receive(.body(bytes(10)))
        machine.bodyFilled()
        _ = machine.readCompleted(at: 7, bytes: 20)
        #expect(code(machine.timePassed(to: 7, .init(sent: 0, waiting: 0))) == .stopping)
    }

    @Test mutating func `a body that arrived behind another request is delivered completely and in its order`() {
        let get = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: ["host": "h"])
        _ = receive(.head(get))
        _ = receive(.end(nil))
        for part in [HTTPServerRequestPart.head(head()), .body(bytes(1)), .body(bytes(2))] {
            #expect(receive(part) == .none)
        }
        _ = machine.readCompleted(at: 0, bytes: 100)
        #expect(!machine.wantsToRead)
        #expect(machine.answerEnded(at: 1) == .open)
        #expect(machine.bufferedAction(at: 1, admitsSocket: { true }) == .stream(head()))
        #expect(!machine.wantsToRead, "the waiting requests come first")
        machine.writabilityChanged(false)
        #expect(machine.bufferedAction(at: 1, admitsSocket: { true }) == nil)
        #expect(receive(.body(bytes(3))) == .none)
        machine.writabilityChanged(true)
        for count in 1...3 {
            #expect(machine.bufferedAction(at: 1, admitsSocket: { true }) == .streamed(bytes(count)))
        }
        #expect(machine.bufferedAction(at: 1, admitsSocket: { true }) == nil)
        #expect(machine.wantsToRead)
        #expect(machine.deadline == 31, "more of it is waited for")
        #expect(receive(.end(nil)) == .streamEnded)
    }

    @Test mutating func `an answer that does not wait for the body closes the connection`() {
        _ = receive(.head(head()))
        _ = receive(.body(bytes(10)))
        #expect(machine.answerBegan(hasLength: true) == "close")
        #expect(machine.answerEnded(at: 1) == .lingering)
        #expect(receive(.body(bytes(10))) == .none)
        #expect(!machine.wantsToRead)
    }

    // MARK: Files

    private func file(_ method: HTTPMethod = .PATCH, _ uri: String = "/v1/attachments/x") -> HTTPRequestHead {
        HTTPRequestHead(version: .http1_1, method: method, uri: uri, headers: ["host": "h"])
    }

    @Test mutating func `files stream where they are uploaded, and nowhere else`() {
        for streamed in [file(), file(.POST, "/v1/attachments"), file(.POST, "/v1/attachments?readers=x")] {
            var machine = RequestMachine(settings: .init(), at: 0)
            #expect(machine.received(.head(streamed), admitsSocket: { true }) == .stream(streamed))
        }
        for other in [
            file(.PATCH, "/v1/attachments"), file(.POST, "/v1/attachments/x"), file(.PUT), file(.POST, "/v1/attachmentsx"),
            file(.GET), file(.PATCH, "/v1/device"),
        ] {
            var machine = RequestMachine(settings: .init(), at: 0)
            #expect(machine.received(.head(other), admitsSocket: { true }) == .none)
        }
    }

    @Test mutating func `a file must arrive at a rate, not by a byte now and then`() {
        _ = receive(.head(file()))
        _ = machine.readCompleted(at: 0, bytes: 100)
        for second in [10, 20] {
            _ = receive(.body(bytes(16_384)))
            _ = machine.readCompleted(at: second, bytes: 16_400)
        }
        #expect(machine.deadline == 50, "32 KiB in 30 seconds are enough for as many more")
        for second in 21..<50 {
            _ = receive(.body(bytes(1000)))
            _ = machine.readCompleted(at: second, bytes: 1000)
            #expect(machine.timePassed(to: second, .init(sent: 0, waiting: 0)) == .none)
        }
        #expect(code(machine.timePassed(to: 50, .init(sent: 0, waiting: 0))) == .requestTimeout)
    }

    @Test mutating func `an interim response is sent before the answer, and not behind its beginning`() {
        #expect(!machine.mayNotify)
        _ = receive(.head(file()))
        #expect(machine.mayNotify)
        _ = receive(.end(nil))
        #expect(machine.mayNotify)
        _ = machine.answerBegan(hasLength: true)
        #expect(!machine.mayNotify)
        #expect(machine.answerEnded(at: 1) == .open)
        var old = file()
        old.version = .http1_0
        _ = receive(.head(old))
        #expect(!machine.mayNotify)
    }

    // MARK: The stream

    @Test func `a task that is cancelled while it waits for more gets the bytes that have arrived`() async throws {
        let (wanted, wants) = AsyncStream.makeStream(of: Void.self)
        let stream = RequestStream(onWanted: { wants.yield() }, onTaken: {})
        _ = stream.add(bytes(3))
        let reading = Task {
            var count = 0
            do {
                for try await part in stream { count += part.readableBytes }
                return (count, ErrorCode?.none)
            } catch {
                return (count, (error as? Refusal)?.code)
            }
        }
        for await _ in wanted { break }
        reading.cancel()
        let (count, code) = await reading.value
        #expect(count == 3 && code == .bodyIncomplete)
    }

    @Test func `a stream reports when it is full, and when it has space again`() async throws {
        let (rooms, room) = AsyncStream.makeStream(of: Void.self)
        let stream = RequestStream(onWanted: {}, onTaken: { room.yield() })
        let half = bytes(RequestStream.mostBytes / 2)
        #expect(!stream.add(half))
        #expect(stream.add(half))
        stream.end()
        var reader = stream.makeAsyncIterator()
        #expect(try await reader.next()?.readableBytes == RequestStream.mostBytes)
        #expect(try await reader.next() == nil)
        room.finish()
        var count = 0
        for await _ in rooms { count += 1 }
        #expect(count == 1)
    }

    @Test func `a reader receives the data before the fault, and then the fault`() async throws {
        let stream = RequestStream(onWanted: {}, onTaken: {})
        let reading = Task {
            var count = 0
            do {
                for try await part in stream { count += part.readableBytes }
                return (count, ErrorCode?.none)
            } catch {
                return (count, (error as? Refusal)?.code)
            }
        }
        _ = stream.add(bytes(1))
        _ = stream.add(bytes(1))
        stream.end(Refusal(.bodyIncomplete, ""))
        stream.end(Refusal(.stopping, ""))
        let (count, code) = await reading.value
        #expect(count == 2)
        #expect(code == .bodyIncomplete)
    }

    // MARK: Lines

    @Test func `lines are joined from parts, and numbered as in the body`() throws {
        var lines = UpdateLines()
        for text in ["{\"a\"", ":1}\n\n  \n{", "}\r\n{\"b\":2}"] {
            var part = ByteBuffer(string: text)
            #expect(try !lines.read(&part))
        }
        try lines.end()
        #expect(lines.take().map(\.number) == [1, 4, 5])
        #expect(lines.take().isEmpty)
    }

    @Test func `a limited number of lines is processed at once, and a line has a limit`() throws {
        var lines = UpdateLines()
        var part = ByteBuffer(string: String(repeating: "{}\n", count: UpdateLines.atOnce + 1))
        #expect(try lines.read(&part))
        #expect(lines.take().count == UpdateLines.atOnce)
        #expect(try !lines.read(&part))
        #expect(lines.take().map(\.number) == [UpdateLines.atOnce + 1])
        var long = ByteBuffer(string: String(repeating: String(repeating: "y", count: 60_000) + "\n", count: 6))
        #expect(try lines.read(&long))
        #expect(lines.take().count == 5, "few of them are as much as many small ones")
        #expect(try !lines.read(&long))
        #expect(lines.take().count == 1)
        var fits = ByteBuffer(repeating: UInt8(ascii: "x"), count: Limits.apiBodyBytes)
        #expect(try !lines.read(&fits))
        var more = ByteBuffer(string: "x\n")
        let refusal = #expect(throws: Refusal.self) { try lines.read(&more) }
        #expect(refusal?.code == .bodyTooLarge)
        #expect(refusal?.detail.contains("Line \(UpdateLines.atOnce + 8)") == true)
    }
}
