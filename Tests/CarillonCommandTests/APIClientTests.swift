import CarillonBasics
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing

@testable import CarillonCommand

/// The requests of commands to the HTTP API.
@Suite(.timeLimit(.minutes(5)))
struct APIClientTests {
    /// Answers with a head and a part of the body.
    private final class StalledAnswer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let answer = ByteBuffer(string: "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
            context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
        }
    }

    @Test func `an answer with a stalled body ends in time`() async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(StalledAnswer())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listener.localAddress?.port)
        let client = APIClient(server: "http://127.0.0.1:\(port)", key: nil)
        let fault = await #expect(throws: CommandFault.self) {
            try await client.send(.GET, "/health/live", timeout: .seconds(1))
        }
        #expect(fault?.code == ExitStatus.unreachable)
        #expect(fault?.message.contains("within 1 seconds") == true, "\(fault?.message ?? "")")
        try await listener.close()
    }

    /// Answers DELETE with 204, and every other request with the description of a server.
    private final class DescribedServer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let name: String

        init(name: String) { self.name = name }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let isDeletion = String(buffer: unwrapInboundIn(data)).hasPrefix("DELETE")
            let body = #"{"server":"s","socket":"ws://host/","endpoints":"http://host/push/"}"#
            let answer =
                isDeletion
                ? "HTTP/1.1 204 No Content\r\n\r\n"
                : "HTTP/1.1 200 OK\r\n\(name)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }
    }

    @Test(arguments: [("", true), ("Carillon-Server: s\r\n", false)])
    func `a 204 without a name is accepted of a server that never names itself`(name: String, isAccepted: Bool) async throws
    {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(DescribedServer(name: name))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listener.localAddress?.port)
        let client = APIClient(server: "http://127.0.0.1:\(port)", key: nil)
        let answer = try await client.send(.DELETE, "/v1/apps/a.b")
        let fault: CommandFault?
        do {
            _ = try client.accepted(answer)
            fault = nil
        } catch let error as CommandFault {
            fault = error
        }
        #expect((fault == nil) == isAccepted)
        #expect(fault == nil || fault?.code == ExitStatus.tryAgain)
        try await listener.close()
    }

    /// Answers with five pages of two numbers, and with at most as many numbers as the request asks for.
    private final class PagedList: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let requests = Mutex<[String]>([])

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let line = String(buffer: Self.unwrapInboundIn(data)).prefix { $0 != "\r" }
            let path = String(line.split(separator: " ")[1])
            let (page, size) = requests.withLock { requests in
                requests.append(path)
                return (requests.count, path.firstMatch(of: /size=([0-9]+)/).flatMap { Int($0.1) } ?? 0)
            }
            let numbers = (0..<min(2, size)).map { String(page * 10 + $0) }.joined(separator: ",")
            let next = page < 5 ? #","next":"p\#(page)""# : ""
            let body = #"{"numbers":[\#(numbers)]\#(next)}"#
            let answer = "HTTP/1.1 200 OK\r\nCarillon-Server: s\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }
    }

    @Test func `a list is read page by page up to its limit`() async throws {
        let list = PagedList()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(list) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listener.localAddress?.port)
        let client = APIClient(server: "http://127.0.0.1:\(port)", key: nil)
        var numbers: [JSONValue] = []
        let path = { (size: Int, place: String?) in "/list?size=\(size)" + (place.map { "&after=\($0)" } ?? "") }
        try await client.list("numbers", limit: 5, at: path) { numbers.append($0) }
        #expect(numbers == [10, 11, 20, 21, 30].map(JSONValue.integer))
        #expect(
            list.requests.withLock { $0 } == ["/list?size=5", "/list?size=3&after=p1", "/list?size=1&after=p2"])
        try await listener.close()
    }
}
