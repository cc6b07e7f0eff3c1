import NIOCore

/// Counts what an answer sends, whatever it may be, and ends it when it is too much.
final class AnswerBudget: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    struct Exceeded: Error {}

    /// Of an answer of which no body is wanted.
    static let bytes = 16_384

    private let limit: Int
    private var received = 0

    init(bytes: Int) { limit = bytes }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += Self.unwrapInboundIn(data).readableBytes
        guard received <= limit else { return context.fireErrorCaught(Exceeded()) }
        context.fireChannelRead(data)
    }
}
