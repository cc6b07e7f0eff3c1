import NIOCore
import NIOHTTP1
import NIOPosix
import Testing

@testable import CarillonCommand

/// The requests of commands to the HTTP API.
@Suite(.timeLimit(.minutes(1)))
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

    @Test func `an answer whose body stalls ends in time`() async throws {
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
}
