import NIOCore
import NIOWebSocket

/// One open WebSocket. Frames are sent in the order of the calls, from any thread; events are read by one task.
struct WebSocketConnection: Sendable {
    /// An event from the server.
    enum Event: Sendable {
        case text([UInt8])
        /// A ping, which was answered, or a pong.
        case signOfLife
        /// A binary message, which the protocol does not use: another program sent it.
        case binary
    }

    let channel: any NIOCore.Channel
    let inbound: NIOAsyncChannelInboundStream<WebSocketFrame>

    /// Passes each event to the closure until the connection ends.
    ///
    /// - Returns: The close code of the server; nil if the connection ended without one.
    func forEachEvent(_ body: (Event) async -> Void) async throws -> UInt16? {
        for try await frame in inbound {
            switch frame.opcode {
            case .text:
                await body(.text(Array(frame.unmaskedData.readableBytesView)))
            case .binary:
                await body(.binary)
            case .ping:
                write(.pong, frame.unmaskedData)
                await body(.signOfLife)
            case .pong:
                await body(.signOfLife)
            case .connectionClose:
                var data = frame.unmaskedData
                let code = data.readInteger(as: UInt16.self)
                close(code: code ?? 1000)
                return code
            default:
                break
            }
        }
        return nil
    }

    func send(_ text: [UInt8]) {
        write(.text, channel.allocator.buffer(bytes: text))
    }

    /// Sends a close frame after all earlier frames, and closes the connection when the frame is written, or after a second if
    /// the peer does not accept it.
    func close(code: UInt16) {
        var data = channel.allocator.buffer(capacity: 2)
        data.writeInteger(code)
        let channel = channel
        let deadline = channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
        write(.connectionClose, data).whenComplete { _ in
            deadline.cancel()
            channel.close(promise: nil)
        }
    }

    @discardableResult
    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) -> EventLoopFuture<Void> {
        channel.writeAndFlush(WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data))
    }
}
