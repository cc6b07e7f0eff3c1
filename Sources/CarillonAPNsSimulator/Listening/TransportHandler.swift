import NIOCore

/// The network beneath TLS: it can take its time, and it can break.
final class TransportHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let roundTrip: TimeAmount
    private var context: ChannelHandlerContext?

    init(roundTrip: Duration) { self.roundTrip = TimeAmount(roundTrip) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// All of the delay is on the way in: that delays answers, windows and confirmations alike.
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

    /// Closes the socket beneath TLS, which so cannot say goodbye.
    func cut() { context?.close(promise: nil) }
}
