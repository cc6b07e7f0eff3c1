import NIOCore
import NIOHTTP1
import NIOPosix
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
}
