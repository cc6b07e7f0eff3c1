import NIOCore

/// Counts what an answer sends, whatever it may be, and ends it when it is too much.
final class AnswerBudget: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    struct Exceeded: Error {}

    static let bytes = 16_384

    private var received = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += Self.unwrapInboundIn(data).readableBytes
        guard received <= Self.bytes else { return context.fireErrorCaught(Exceeded()) }
        context.fireChannelRead(data)
    }
}
