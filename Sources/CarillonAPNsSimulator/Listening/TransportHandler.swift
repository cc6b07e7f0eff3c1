import NIOCore

/// Simulates the network below TLS: delays data, and breaks the connection.
final class TransportHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let roundTrip: TimeAmount
    private var context: ChannelHandlerContext?

    init(roundTrip: Duration) { self.roundTrip = TimeAmount(roundTrip) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// The whole delay is applied to received data. It thus delays responses, windows and acknowledgements alike.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard roundTrip > .zero else { return context.fireChannelRead(data) }
        let bytes = unwrapInboundIn(data)
        let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: roundTrip) { loopBound.value.deliver(bytes) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if roundTrip == .zero { context.fireChannelReadComplete() }
    }

    private func deliver(_ bytes: ByteBuffer) {
        guard let context else { return }
        context.fireChannelRead(wrapInboundOut(bytes))
        context.fireChannelReadComplete()
    }

    /// Closes the socket below TLS, so that TLS is not ended.
    func cut() { context?.close(promise: nil) }
}
