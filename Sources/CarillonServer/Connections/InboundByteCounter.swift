import NIOCore

/// Counts the received bytes in front of the parser, because the parser does not report skipped bytes.
final class InboundByteCounter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var count = 0

    /// Returns the number of bytes received since the last call.
    func take() -> Int {
        defer { count = 0 }
        return count
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count += Self.unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
    }
}
