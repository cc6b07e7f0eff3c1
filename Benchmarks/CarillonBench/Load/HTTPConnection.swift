import NIOCore

/// A keep-alive connection with one request at a time.
///
/// `@unchecked Sendable`: it is used only on ``LoadLoop``.
final class HTTPConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var context: ChannelHandlerContext?
    private var received = ByteBuffer()
    private var answer: (@Sendable (Result<HTTPAnswer, any Error>) -> Void)?

    static func open(_ address: SocketAddress) -> EventLoopFuture<HTTPConnection> {
        let connection = HTTPConnection()
        return LoadLoop.connect(address, connection).map { _ in connection }
    }

    static func open(_ count: Int, _ address: SocketAddress) -> EventLoopFuture<[HTTPConnection]> {
        EventLoopFuture.whenAllSucceed((0..<count).map { _ in open(address) }, on: LoadLoop.loop)
    }

    func send(_ request: ByteBuffer, then answer: @escaping @Sendable (Result<HTTPAnswer, any Error>) -> Void) {
        guard let context else { return answer(.failure(NotMeasured("the server closed an HTTP connection"))) }
        self.answer = answer
        context.writeAndFlush(Self.wrapOutboundOut(request), promise: nil)
    }

    func close() { context?.close(promise: nil) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        answer?(.failure(NotMeasured("the server closed an HTTP connection without an answer")))
        answer = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = Self.unwrapInboundIn(data)
        if received.readableBytes > 0 {
            received.writeBuffer(&buffer)
        } else {
            received = buffer
        }
        guard let answer = HTTPAnswer.take(from: &received) else { return }
        let then = self.answer
        self.answer = nil
        then?(.success(answer))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

extension HTTPConnection {
    /// Sends one request on a new connection.
    static func exchange(_ request: ByteBuffer, _ address: SocketAddress) async throws -> HTTPAnswer {
        try await LoadLoop.run {
            open(address).flatMap { connection in
                let promise = LoadLoop.loop.makePromise(of: HTTPAnswer.self)
                connection.send(request) { result in
                    promise.completeWith(result)
                    connection.close()
                }
                return promise.futureResult
            }
        }
    }
}
