import CarillonWire
import NIOCore
import NIOWebSocket
import Synchronization

/// The server's end of one WebSocket.
final class ServerSocket: Sendable {
    /// The socket ended, or sent something else than the test waited for.
    struct Ended: Error {}

    enum Event: Sendable {
        case frame(ClientFrame)
        case pong
        case closed(code: UInt16?)
    }

    let channel: any NIOCore.Channel
    private let events: AsyncStream<Event>
    private let arrival: AsyncStream<Event>.Continuation

    init(channel: any NIOCore.Channel) {
        self.channel = channel
        (events, arrival) = AsyncStream.makeStream()
    }

    func arrived(_ event: Event) { arrival.yield(event) }

    func end() { arrival.finish() }

    func next() async throws -> Event {
        for await event in events { return event }
        throw Ended()
    }

    /// Waits for the next frame; anything else is a fault.
    func receive() async throws -> ClientFrame {
        guard case .frame(let frame) = try await next() else { throw Ended() }
        return frame
    }

    /// Waits until the socket ends, and returns the client's code.
    func closeCode() async -> UInt16? {
        var code: UInt16?
        for await event in events {
            if case .closed(let given) = event { code = given }
        }
        return code
    }

    func send(_ frame: ServerFrame) { send(text: frame.text) }

    func send(text: [UInt8]) { write(.text, channel.allocator.buffer(bytes: text)) }

    func send(binary bytes: [UInt8]) { write(.binary, channel.allocator.buffer(bytes: bytes)) }

    func send(fragments: [[UInt8]]) {
        for (index, bytes) in fragments.enumerated() {
            let frame = WebSocketFrame(
                fin: index == fragments.count - 1, opcode: index == 0 ? .text : .continuation,
                data: channel.allocator.buffer(bytes: bytes))
            channel.writeAndFlush(frame, promise: nil)
        }
    }

    func ping() { write(.ping, ByteBuffer()) }

    func close(code: UInt16) {
        var data = channel.allocator.buffer(capacity: 2)
        data.writeInteger(code)
        write(.connectionClose, data)
    }

    func drop() { channel.close(promise: nil) }

    /// Waits for a registration and opens the channel.
    @discardableResult
    func acceptRegistration(token: String) async throws -> String {
        guard case .register(let register) = try await receive() else { throw Ended() }
        send(
            .register(
                .init(
                    channelID: register.channelID, status: 200, pushEndpoint: "https://push.example.com/push/\(token)"))
        )
        return register.channelID
    }

    func notify(_ channelID: String, _ version: String, _ body: String = "") {
        notify(channelID, version, bytes: Array(body.utf8))
    }

    func notify(_ channelID: String, _ version: String, bytes: [UInt8]) {
        send(
            .notification(
                .init(
                    channelID: channelID, version: version, body: bytes,
                    coding: bytes.isEmpty ? nil : ContentCoding(.identity))))
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        channel.writeAndFlush(WebSocketFrame(fin: true, opcode: opcode, data: data), promise: nil)
    }
}

final class ServerSocketHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    private let socket: ServerSocket

    init(_ socket: ServerSocket) { self.socket = socket }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        var content = frame.unmaskedData
        switch frame.opcode {
        case .text:
            // RFC 6455 section 5.1: frames of a client are masked.
            guard frame.maskKey != nil else { return context.close(promise: nil) }
            do {
                socket.arrived(.frame(try ClientFrame(parsing: Array(buffer: content))))
            } catch {
                context.close(promise: nil)
            }
        case .pong: socket.arrived(.pong)
        case .connectionClose:
            socket.arrived(.closed(code: content.readInteger()))
            context.close(promise: nil)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) { socket.end() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
