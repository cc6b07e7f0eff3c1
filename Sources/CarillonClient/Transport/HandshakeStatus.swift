import NIOCore

/// Reads the status of the response to a WebSocket handshake, and leaves the pipeline. All bytes are forwarded unchanged.
final class HandshakeStatus: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// The bytes of `HTTP/1.1 101`.
    private static let lineBytes = 12

    private let found: @Sendable (Int) -> Void
    private var line: [UInt8] = []

    init(_ found: @escaping @Sendable (Int) -> Void) { self.found = found }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        line += Self.unwrapInboundIn(data).readableBytesView.prefix(Self.lineBytes - line.count)
        if line.count == Self.lineBytes {
            if line.starts(with: Array("HTTP/1.".utf8)), let status = Int(String(decoding: line.suffix(3), as: UTF8.self)) {
                found(status)
            }
            context.fireChannelRead(data)
            return context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
        context.fireChannelRead(data)
    }
}
