import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import CarillonServer

struct RequestGuardTests {
    /// A connection with the guard in its place.
    private struct Connection {
        let channel = EmbeddedChannel()

        init() throws {
            let limits = NIOHTTPDecoderLimitConfiguration()
            try channel.pipeline.syncOperations.addHandlers([
                HTTPResponseEncoder(),
                ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: limits)),
                RequestGuard(headSeconds: 10, bodySeconds: 30, admitsSocket: { true }),
            ])
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func receive(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }

        func answer(_ status: HTTPResponseStatus) throws {
            try channel.writeOutbound(
                HTTPServerResponsePart.head(.init(version: .http1_1, status: status, headers: ["content-length": "0"])))
            try channel.writeOutbound(HTTPServerResponsePart.end(nil))
        }

        func sent() throws -> String {
            var text = ""
            while let buffer = try channel.readOutbound(as: ByteBuffer.self) { text += String(buffer: buffer) }
            return text
        }

        func head() throws -> HTTPRequestHead? {
            guard case .head(let head)? = try channel.readInbound(as: HTTPServerRequestPart.self) else { return nil }
            return head
        }
    }

    private let post = "POST /push/x HTTP/1.1\r\nHost: a\r\n"

    @Test func `a head that does not come in time is answered with 408`() throws {
        let connection = try Connection()
        try connection.receive("POST /push/x HT")
        connection.channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(try connection.sent().hasPrefix("HTTP/1.1 408"))
    }

    @Test func `a body that does not come in time is answered with 408, and its reading fails`() throws {
        let connection = try Connection()
        try connection.receive(post + "Content-Length: 10\r\n\r\nabc")
        connection.channel.embeddedEventLoop.advanceTime(by: .seconds(29))
        #expect(try connection.sent().isEmpty)
        connection.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(try connection.sent().hasPrefix("HTTP/1.1 408"))
        #expect(throws: RequestTimedOut.self) { try connection.channel.throwIfErrorCaught() }
    }

    @Test func `an answer before the end of the body closes the connection, and nothing more is read`() throws {
        let connection = try Connection()
        try connection.receive(post + "Content-Length: 100000\r\n\r\nabc")
        _ = try connection.head()
        while try connection.channel.readInbound(as: HTTPServerRequestPart.self) != nil {}
        try connection.answer(.payloadTooLarge)
        #expect(try connection.sent().contains("connection: close"))
        try? connection.receive("defghi")
        #expect(try connection.channel.readInbound(as: HTTPServerRequestPart.self) == nil)
    }

    @Test func `an answer to a whole request keeps the connection`() throws {
        let connection = try Connection()
        try connection.receive(post + "Content-Length: 3\r\n\r\nabc")
        try connection.answer(.created)
        #expect(try !connection.sent().contains("connection: close"))
        #expect(connection.channel.isActive)
    }

    @Test func `another upgrade than ours is none, and the request is answered`() throws {
        let connection = try Connection()
        try connection.receive("GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        #expect(try #require(try connection.head()).headers["upgrade"].isEmpty)
        try connection.answer(.ok)
        #expect(try connection.sent().contains("connection: close"))
    }

    @Test func `a good handshake passes as it is`() throws {
        let connection = try Connection()
        try connection.receive(
            """
            GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n
            """)
        #expect(try #require(try connection.head()).headers["upgrade"] == ["websocket"])
    }

    @Test func `what is not HTTP is answered with 400`() throws {
        let connection = try Connection()
        #expect(throws: (any Error).self) {
            try connection.receive("nonsense\r\n\r\n")
            try connection.channel.throwIfErrorCaught()
        }
        #expect(try connection.sent().hasPrefix("HTTP/1.1 400"))
    }

    @Test(arguments: ["gzip, chunked", "gzip", "chunked, chunked", "identity"])
    func `a transfer coding that is not understood is refused`(coding: String) throws {
        let connection = try Connection()
        try? connection.receive(post + "Transfer-Encoding: \(coding)\r\n\r\n")
        #expect(try connection.sent().hasPrefix("HTTP/1.1 400"))
    }

    @Test(arguments: [("100", true), ("100000", false)])
    func `a body is asked for only when it may be taken`(length: String, isAskedFor: Bool) throws {
        let connection = try Connection()
        try connection.receive(post + "Expect: 100-continue\r\nContent-Length: \(length)\r\n\r\n")
        #expect(try connection.sent().hasPrefix("HTTP/1.1 100") == isAskedFor)
    }
}
