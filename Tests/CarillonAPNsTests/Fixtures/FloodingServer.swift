import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import Synchronization

@testable import CarillonAPNs

/// A host that sends one frame without end, and reads nothing.
final class FloodingServer: Sendable {
    final class Watch: Sendable {
        let counts = Mutex((opened: 0, closed: 0, bytes: 0))
    }

    private let listener: any NIOCore.Channel
    private let watch = Watch()

    var port: Int { listener.localAddress?.port ?? 0 }
    var counts: (opened: Int, closed: Int, bytes: Int) { watch.counts.withLock { $0 } }

    /// - Parameter tls: nil without TLS.
    init(frame: ByteBuffer, tls: NIOSSLContext?) async throws {
        let watch = watch
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.socketOption(.so_rcvbuf), value: 4096)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
                    try pipeline.addHandler(FloodHandler(frame: frame, isSecure: tls != nil, watch: watch))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    func close() async throws { try await listener.close() }
}

private final class FloodHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let chunk: ByteBuffer
    private let isSecure: Bool
    private let watch: FloodingServer.Watch
    private var isFlooding = false

    init(frame: ByteBuffer, isSecure: Bool, watch: FloodingServer.Watch) {
        var chunk = ByteBuffer()
        while chunk.readableBytes < 32_768 { chunk.writeImmutableBuffer(frame) }
        self.chunk = chunk
        self.isSecure = isSecure
        self.watch = watch
    }

    func channelActive(context: ChannelHandlerContext) {
        if !isSecure { begin(context) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { begin(context) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { flood(context) }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    func channelInactive(context: ChannelHandlerContext) { watch.counts.withLock { $0.closed += 1 } }

    private func begin(_ context: ChannelHandlerContext) {
        watch.counts.withLock { $0.opened += 1 }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.channel.setOption(.autoRead, value: false).whenSuccess {
            let (handler, context) = bound.value
            var settings = ByteBuffer()
            APNsFrameHead(length: 0, kind: .settings).write(into: &settings)
            context.writeAndFlush(handler.wrapOutboundOut(settings), promise: nil)
            handler.isFlooding = true
            handler.flood(context)
        }
    }

    private func flood(_ context: ChannelHandlerContext) {
        guard isFlooding else { return }
        // In portions, so that a shared loop continues.
        for _ in 0..<16 where context.channel.isActive && context.channel.isWritable {
            watch.counts.withLock { $0.bytes += chunk.readableBytes }
            context.writeAndFlush(wrapOutboundOut(chunk), promise: nil)
        }
        guard context.channel.isActive, context.channel.isWritable else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.execute { bound.value.0.flood(bound.value.1) }
    }
}
