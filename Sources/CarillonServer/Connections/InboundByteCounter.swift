import NIOCore

/// Counts what comes from a peer, in front of the parser, which does not say what it passes over.
final class InboundByteCounter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var count = 0

    /// How many bytes came since this was asked last.
    func take() -> Int {
        defer { count = 0 }
        return count
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count += Self.unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
    }
}
