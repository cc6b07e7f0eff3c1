import NIOCore
import NIOPosix
import NIOSOCKS
import Synchronization

/// A proxy that knows CONNECT alone.
final class ConnectProxy: Sendable {
    let port: Int
    private let listener: any NIOCore.Channel
    private let headBox: HeadBox

    var head: String { headBox.text.withLock { $0 } }

    init(allows: Bool) async throws {
        let head = HeadBox()
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ProxyHandler(allows: allows, head: head))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
        headBox = head
    }

    func close() async throws { try await listener.close() }
}

final class HeadBox: Sendable {
    let text = Mutex("")
}

private final class ProxyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let allows: Bool
    private let head: HeadBox
    private var onward: (any NIOCore.Channel)?
    private var hasHead = false

    init(allows: Bool, head: HeadBox) {
        self.allows = allows
        self.head = head
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if let onward {
            onward.writeAndFlush(bytes, promise: nil)
            return
        }
        guard !hasHead else { return }
        let text = head.text.withLock { text in
            text += String(buffer: bytes)
            return text
        }
        guard text.contains("\r\n\r\n") else { return }
        hasHead = true
        // RFC 9112 section 3.2: a request without Host is refused.
        guard allows, text.contains("\r\nHost: "),
            let target = text.split(separator: " ").dropFirst().first?.split(separator: ":").last,
            let port = Int(target)
        else {
            context.writeAndFlush(
                wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")), promise: nil)
            return
        }
        let back = context.channel
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        ClientBootstrap(group: context.eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RelayHandler(back: back))
                }
            }
            .connect(host: "localhost", port: port)
            .whenSuccess { channel in
                bound.value.onward = channel
                back.writeAndFlush(ByteBuffer(string: "HTTP/1.1 200 OK\r\n\r\n"), promise: nil)
            }
    }

    func channelInactive(context: ChannelHandlerContext) { onward?.close(promise: nil) }
}

/// Passes bytes to another channel.
private final class RelayHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let back: any NIOCore.Channel

    init(back: any NIOCore.Channel) { self.back = back }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        back.writeAndFlush(unwrapInboundIn(data), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { back.close(promise: nil) }
}

/// A SOCKS 5 proxy.
final class SocksProxy: Sendable {
    let port: Int
    private let listener: any NIOCore.Channel
    private let targetBox: TargetBox

    var targets: [String] { targetBox.targets.withLock { $0 } }

    init(allows: Bool) async throws {
        let targets = TargetBox()
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        SOCKSServerHandshakeHandler(), SocksHandler(allows: allows, targets: targets))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
        targetBox = targets
    }

    func close() async throws { try await listener.close() }
}

final class TargetBox: Sendable {
    let targets = Mutex<[String]>([])
}

private final class SocksHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ClientMessage
    typealias OutboundOut = ServerMessage

    private let allows: Bool
    private let targets: TargetBox
    private var isOver = false

    init(allows: Bool, targets: TargetBox) {
        self.allows = allows
        self.targets = targets
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // After the handshake, bytes follow.
        guard !isOver else { return }
        switch unwrapInboundIn(data) {
        case .greeting:
            context.writeAndFlush(wrapOutboundOut(.selectedAuthenticationMethod(.init(method: .noneRequired))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.authenticationData(ByteBuffer(), complete: true)), promise: nil)
        case .request(let request):
            isOver = true
            guard case .domain(let host, let port) = request.addressType else { return context.close(promise: nil) }
            targets.targets.withLock { $0.append("\(host):\(port)") }
            guard allows else { return answer(context.channel, .notAllowed, request.addressType) }
            connect(context, host, port, request.addressType)
        default: break
        }
    }

    private func connect(_ context: ChannelHandlerContext, _ host: String, _ port: Int, _ target: SOCKSAddress) {
        let back = context.channel
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        ClientBootstrap(group: context.eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RelayHandler(back: back))
                }
            }
            .connect(host: host, port: port)
            .whenSuccess { channel in
                bound.value.answer(back, .succeeded, target)
                do {
                    let pipeline = back.pipeline.syncOperations
                    let handshake = try pipeline.handler(type: SOCKSServerHandshakeHandler.self)
                    try pipeline.addHandler(RelayHandler(back: channel))
                    pipeline.removeHandler(bound.value, promise: nil)
                    pipeline.removeHandler(handshake, promise: nil)
                } catch {
                    back.close(promise: nil)
                }
            }
    }

    private func answer(_ channel: any NIOCore.Channel, _ reply: SOCKSServerReply, _ target: SOCKSAddress) {
        channel.writeAndFlush(ServerMessage.response(.init(reply: reply, boundAddress: target)), promise: nil)
    }
}
