import NIOCore

/// Counts the received bytes of a response, independent of their content, and ends the response beyond a limit.
final class AnswerBudget: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    struct Exceeded: Error {}

    /// The limit for a response whose body is not needed.
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
