import NIOCore
import NIOPosix
import Synchronization

/// A host that accepts connections and sends nothing, not even for TLS.
final class SilentListener: Sendable {
    private let listener: any NIOCore.Channel
    private let taken = Counted()

    final class Counted: Sendable {
        let count = Mutex(0)
    }

    var port: Int { listener.localAddress?.port ?? 0 }
    var accepted: Int { taken.count.withLock { $0 } }

    init() async throws {
        let taken = taken
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                taken.count.withLock { $0 += 1 }
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func close() async throws { try await listener.close() }
}

/// A host that sends the same data to each client after its first data, and disconnects.
final class CannedListener: Sendable {
    private let listener: any NIOCore.Channel

    var port: Int { listener.localAddress?.port ?? 0 }

    init(_ answer: [UInt8]) async throws {
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(CannedHandler(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func close() async throws { try await listener.close() }
}

private final class CannedHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answer: ByteBuffer
    init(_ answer: [UInt8]) { self.answer = ByteBuffer(bytes: answer) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
        context.close(promise: nil)
    }
}
