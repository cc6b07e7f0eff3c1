import NIOCore
import NIOSSL
import NIOTLS

/// The last handler of a connection's pipeline. It passes received bytes and the state of the socket to the pool, and writes
/// the pool's output.
final class APNsConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let id: ConnectionID
    private let pool: ConnectionPool
    private let isSecure: Bool
    private var isReady = false
    private var fault: (any Error)?

    init(id: ConnectionID, pool: ConnectionPool, isSecure: Bool) {
        self.id = id
        self.pool = pool
        self.isSecure = isSecure
    }

    func handlerAdded(context: ChannelHandlerContext) {
        if !isSecure, context.channel.isActive { ready(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        if !isSecure { ready(context) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let negotiated)? = event as? TLSUserEvent {
            if negotiated == "h2" {
                ready(context)
            } else {
                fault = ConnectFault.notHTTP2
                context.close(promise: nil)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard isReady else { return }
        var bytes = unwrapInboundIn(data)
        pool.received(&bytes, id)
    }

    func channelReadComplete(context: ChannelHandlerContext) { pool.endTurn() }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if isReady, context.channel.isWritable { pool.becameWritable(id) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A peer that closes the socket without closing TLS has closed the connection; this is not a fault.
        if (error as? NIOSSLError) != .uncleanShutdown, fault == nil { fault = error }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        pool.closed(id, fault)
        context.fireChannelInactive()
    }

    private func ready(_ context: ChannelHandlerContext) {
        guard !isReady else { return }
        isReady = true
        pool.connected(id, context.channel)
    }
}

/// Why a connection could not be opened although the host responded.
enum ConnectFault: Error {
    /// TLS did not negotiate `h2`.
    case notHTTP2
}
